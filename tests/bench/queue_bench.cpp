// SPDX-License-Identifier: Apache-2.0
// Hold model: a number of events is pending; each one that happens schedules one later.
#include <algorithm>
#include <memory>
#include <queue>
#include <string>
#include <systemc>
#include <vector>

#include "sim/events/simulation.h"
#include "tests/bench/contest.h"
#include "tests/bench/contestants.h"

namespace orrery::bench {
namespace {

// Delays spread over 5 us at 1 ps: few events share a time.
constexpr std::uint64_t kEventSpread = 5'000'000;

std::uint64_t events_for(std::uint32_t pending) { return std::max(1'000'000U, 3 * pending); }

/// Starts the clock at the first event and stops it at the last of the quota.
class Stopwatch {
 public:
  explicit Stopwatch(std::uint64_t events) : events_(events) {}
  /// Counts an event; true for the last of the quota.
  bool tick() {
    if (count_ == 0) {
      begin_ = cpu_seconds();
    }
    if (++count_ != events_) {
      return false;
    }
    per_event_ = (cpu_seconds() - begin_) / static_cast<double>(events_);
    return true;
  }
  Sample sample() const { return {per_event_, 0}; }

 private:
  std::uint64_t events_;
  std::uint64_t count_ = 0;
  double begin_ = 0;
  double per_event_ = 0;
};

class HoldAgenda final : public Agenda {
 public:
  HoldAgenda(std::uint32_t pending, std::uint64_t events) : watch_(events) {
    for (std::uint32_t id = 0; id < pending; ++id) {
      queue_.push({random_(kEventSpread), id, 0, 0});
    }
  }
  Picoseconds next_time() const override { return done_ ? kNever : queue_.top_time(); }
  void execute(Picoseconds now) override {
    while (queue_.top_time() <= now && !done_) {
      const Event event = queue_.pop();
      queue_.push({now + 1 + random_(kEventSpread), event.target, 0, 0});
      done_ = watch_.tick();
    }
  }
  Sample sample() const { return watch_.sample(); }

 private:
  Random random_{1};
  EventQueue queue_;
  Stopwatch watch_;
  bool done_ = false;
};

template <Pace pace>
Sample engine(std::uint32_t pending) {
  HoldAgenda agenda(pending, events_for(pending));
  Simulation::instance().run(agenda, pace);
  return agenda.sample();
}

/// The textbook queue without SystemC: plain data, a sequence number keeps equal times in order.
Sample priority_queue(std::uint32_t pending) {
  struct Item {
    std::uint64_t time, sequence;
    std::uint32_t id;
    bool operator<(const Item& o) const {
      return time != o.time ? time > o.time : sequence > o.sequence;
    }
  };
  Random random(1);
  std::priority_queue<Item> queue;
  std::uint64_t sequence = 0;
  for (std::uint32_t id = 0; id < pending; ++id) {
    queue.push({random(kEventSpread), sequence++, id});
  }
  Stopwatch watch(events_for(pending));
  do {
    const Item item = queue.top();
    queue.pop();
    queue.push({item.time + 1 + random(kEventSpread), sequence++, item.id});
  } while (!watch.tick());
  return watch.sample();
}

/// The usual way in SystemC: a process and an event for each thing that happens.
class HoldProcess : public sc_core::sc_module {
 public:
  SC_HAS_PROCESS(HoldProcess);
  HoldProcess(const sc_core::sc_module_name& name, Random& random, Stopwatch& watch)
      : sc_module(name), random_(random), watch_(watch) {
    SC_METHOD(work);
    sensitive << wake_;
    dont_initialize();
    wake_.notify(sc_core::sc_time::from_value(random_(kEventSpread)));
  }

 private:
  void work() {
    wake_.notify(sc_core::sc_time::from_value(1 + random_(kEventSpread)));
    if (watch_.tick()) {
      sc_core::sc_stop();
    }
  }

  Random& random_;
  Stopwatch& watch_;
  sc_core::sc_event wake_;
};

Sample process_per_event(std::uint32_t pending) {
  Random random(1);
  Stopwatch watch(events_for(pending));
  std::vector<std::unique_ptr<HoldProcess>> processes;
  for (std::uint32_t id = 0; id < pending; ++id) {
    const std::string name = "p" + std::to_string(id);
    processes.push_back(std::make_unique<HoldProcess>(name.c_str(), random, watch));
  }
  sc_core::sc_report_handler::set_actions(sc_core::SC_INFO, sc_core::SC_DO_NOTHING);
  sc_core::sc_start();
  const Sample sample = watch.sample();
  for (auto& process : processes) {
    process.release();  // the child ends here; taking a million modules apart is not measured
  }
  return sample;
}

}  // namespace

void add_queue_contest() {
  const auto with = [](auto run, std::uint32_t pending) { return [=] { return run(pending); }; };
  for (const auto& [label, pending] : std::vector<std::pair<std::string, std::uint32_t>>{
           {"1k", 1000}, {"10k", 10'000}, {"100k", 100'000}, {"1M", 1'000'000}}) {
    add_contestant("queue/engine/" + label, with(engine<Pace::kRunAhead>, pending));
    add_contestant("queue/lockstep/" + label, with(engine<Pace::kLockstep>, pending));
    if (pending < 1'000'000) {
      add_contestant("queue/priority_queue/" + label, with(priority_queue, pending));
    }
    if (pending != 10'000) {
      add_contestant("queue/sc_method/" + label, with(process_per_event, pending));
    }
  }
  const auto compare = [](const char* id, const std::string& a, const std::string& b, Limit limit,
                          double demand) {
    add_comparison(
        {id, a + " / " + b, "queue/" + a, "queue/" + b, Quantity::kSeconds, limit, demand});
  };
  const auto guide = [](const char* id, const std::string& a, const std::string& b, Limit limit,
                        double value) {
    add_comparison(
        {id, a + " / " + b, "queue/" + a, "queue/" + b, Quantity::kSeconds, limit, value, true});
  };
  compare("E1", "engine/10k", "priority_queue/10k", Limit::kAtMost, 1.1);
  compare("E1", "engine/100k", "priority_queue/100k", Limit::kAtMost, 1.1);
  compare("E2", "engine/1k", "priority_queue/1k", Limit::kAtMost, 1.4);
  // With every event at its own sc_time_stamp(), which only agendas that talk to other modules
  // need.
  guide("E1", "lockstep/10k", "priority_queue/10k", Limit::kAtMost, 1.1);
  guide("E1", "lockstep/100k", "priority_queue/100k", Limit::kAtMost, 1.1);
  guide("E2", "lockstep/1k", "priority_queue/1k", Limit::kAtMost, 1.4);
  compare("E3", "sc_method/1k", "engine/1k", Limit::kAtLeast, 1.6);
  compare("E3", "sc_method/100k", "engine/100k", Limit::kAtLeast, 7);
  compare("E3", "sc_method/1M", "engine/1M", Limit::kAtLeast, 8);
  guide("E3", "sc_method/1k", "lockstep/1k", Limit::kAtLeast, 1.6);
  compare("E4", "engine/1M", "engine/1k", Limit::kAtMost, 2.5);
  guide("E4", "lockstep/1M", "lockstep/1k", Limit::kAtMost, 2.5);
}

}  // namespace orrery::bench
