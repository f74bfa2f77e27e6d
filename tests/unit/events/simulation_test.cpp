// SPDX-License-Identifier: Apache-2.0
#include "sim/events/simulation.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <stdexcept>
#include <systemc>
#include <utility>
#include <vector>

namespace orrery::simulation_test {
namespace {

/// Events at given times; notes when they ran, in the run's time and in SystemC's.
class ListAgenda : public Agenda {
 public:
  explicit ListAgenda(const std::vector<Picoseconds>& times) {
    for (const Picoseconds time : times) {
      queue_.push({time, 0, 0, 0});
    }
  }
  Picoseconds next_time() const override { return queue_.top_time(); }
  void execute(Picoseconds now) override {
    while (queue_.top_time() <= now) {
      ran.push_back(queue_.pop().time);
      systemc.push_back(sc_core::sc_time_stamp().value());
      happened(now);
    }
  }
  virtual void happened(Picoseconds /*now*/) {}

  std::vector<Picoseconds> ran;
  std::vector<Picoseconds> systemc;

 private:
  EventQueue queue_;
};

/// A SystemC module that has nothing to do with us: notes when its clock ticked and what the agenda
/// had done by then.
class Ticker : public sc_core::sc_module {
 public:
  SC_HAS_PROCESS(Ticker);
  explicit Ticker(const sc_core::sc_module_name& name) : sc_module(name) {
    SC_METHOD(tick);
    sensitive << start;
    dont_initialize();
  }
  void tick() {
    ticks.emplace_back(sc_core::sc_time_stamp().value(),
                       agenda == nullptr ? 0 : agenda->ran.size());
    if (--left > 0) start.notify(period);
  }

  sc_core::sc_event start;
  sc_core::sc_time period;
  const ListAgenda* agenda = nullptr;
  int left = 0;
  std::vector<std::pair<std::uint64_t, std::size_t>> ticks;
};

// Modules have to exist before time runs, whichever test is first.
Ticker* const kTicker = new Ticker("ticker");

TEST(Simulation, LockstepRunsEachItemAtItsOwnSystemCTimeAndReturnsTheLast) {
  ListAgenda agenda({30, 10, 10, 4'000'000});
  const Picoseconds base = sc_core::sc_time_stamp().value();
  EXPECT_EQ(Simulation::instance().run(agenda, Pace::kLockstep), 4'000'000U);
  EXPECT_EQ(agenda.ran, (std::vector<Picoseconds>{10, 10, 30, 4'000'000}));
  for (std::size_t i = 0; i < agenda.ran.size(); ++i) {
    EXPECT_EQ(agenda.systemc[i] - base, agenda.ran[i]);
  }
}

TEST(Simulation, RunningAheadRunsTheSameItemsAndSystemCArrivesAtTheEnd) {
  const std::vector<Picoseconds> times = {30, 10, 10, 4'000'000, 5};
  ListAgenda lockstep(times), ahead(times);
  Simulation::instance().run(lockstep, Pace::kLockstep);
  const Picoseconds base = sc_core::sc_time_stamp().value();
  EXPECT_EQ(Simulation::instance().run(ahead, Pace::kRunAhead), 4'000'000U);
  EXPECT_EQ(ahead.ran, lockstep.ran);
  EXPECT_EQ(sc_core::sc_time_stamp().value() - base, 4'000'000U);
}

TEST(Simulation, RunningAheadStopsAtTheActivityOfOtherModules) {
  // The other module ticks at 20, 40, 60 ps of the run, our items are due at 10, 15, 30, 50 and 70.
  for (const Pace pace : {Pace::kLockstep, Pace::kRunAhead}) {
    ListAgenda agenda({10, 15, 30, 50, 70});
    kTicker->agenda = &agenda;
    kTicker->ticks.clear();
    kTicker->left = 3;
    kTicker->period = sc_core::sc_time::from_value(20);
    kTicker->start.notify(kTicker->period);
    const std::uint64_t base = sc_core::sc_time_stamp().value();
    Simulation::instance().run(agenda, pace);
    const std::vector<std::pair<std::uint64_t, std::size_t>> expected = {
        {base + 20, 2}, {base + 40, 3}, {base + 60, 4}};
    EXPECT_EQ(kTicker->ticks, expected);
  }
}

TEST(Simulation, RunsAgainInTheSameProcessWithTimeFromZero) {
  for (int run = 0; run < 3; ++run) {
    ListAgenda agenda({0, 7, 9});
    EXPECT_EQ(Simulation::instance().run(agenda), 9U);
    EXPECT_EQ(agenda.ran, (std::vector<Picoseconds>{0, 7, 9}));
  }
}

TEST(Simulation, AnEmptyAgendaTakesNoTime) {
  ListAgenda agenda({});
  EXPECT_EQ(Simulation::instance().run(agenda), 0U);
}

struct OwnError : std::runtime_error {
  using std::runtime_error::runtime_error;
  int detail = 42;
};

TEST(Simulation, AnExceptionKeepsItsTypeAndTheNextRunIsUnharmed) {
  struct Thrower : ListAgenda {
    using ListAgenda::ListAgenda;
    void happened(Picoseconds now) override {
      if (now == 20) {
        throw OwnError("at 20");
      }
    }
  };
  Thrower bad({10, 20, 30});
  try {
    Simulation::instance().run(bad);
    FAIL() << "nothing was thrown";
  } catch (const OwnError& error) {
    EXPECT_STREQ(error.what(), "at 20");
    EXPECT_EQ(error.detail, 42);
  }
  EXPECT_EQ(bad.ran.back(), 20U);
  ListAgenda good({5});
  EXPECT_EQ(Simulation::instance().run(good), 5U);
}

TEST(Simulation, ARunWithinARunIsAnError) {
  struct Nested : ListAgenda {
    using ListAgenda::ListAgenda;
    void happened(Picoseconds /*now*/) override {
      ListAgenda inner({1});
      Simulation::instance().run(inner);
    }
  };
  Nested agenda({1});
  EXPECT_THROW(Simulation::instance().run(agenda), std::logic_error);
}

/// More days than SystemC can count: two runs of 2^63-1 ps fit in 2^64, a third does not. In a
/// child process, because it uses up the time of the process.
void run_for_months(Pace pace) {
  for (int run = 0; run < 5; ++run) {
    ListAgenda agenda({7, kMaxTime});
    if (Simulation::instance().run(agenda, pace) != kMaxTime || agenda.ran.size() != 2)
      std::exit(1);
  }
}

TEST(Simulation, AProcessMayRunAheadForAnyNumberOfDays) {
  EXPECT_EXIT((run_for_months(Pace::kRunAhead), std::exit(0)), testing::ExitedWithCode(0), "");
}

TEST(Simulation, TimeThatSystemCWouldWrapAroundIsAnErrorInLockstep) {
  EXPECT_EXIT(
      {
        try {
          run_for_months(Pace::kLockstep);
        } catch (const std::overflow_error&) {
          std::exit(3);
        }
        std::exit(0);
      },
      testing::ExitedWithCode(3), "");
}

TEST(Simulation, PrintsNoBanner) {
  EXPECT_EXIT(
      {
        ListAgenda agenda({1});
        Simulation::instance().run(agenda);
        std::exit(0);
      },
      testing::ExitedWithCode(0), "^$");
}

}  // namespace
}  // namespace orrery::simulation_test
