// SPDX-License-Identifier: Apache-2.0
#include "sim/events/simulation.h"

#include <cstdlib>
#include <exception>
#include <stdexcept>
#include <systemc>
#include <utility>

// libsystemc's own main() calls this function. Every program here has its own main(), which wins
// when it is linked before the library; a program that gets here was linked in the wrong order.
int sc_main(int /*argc*/, char* /*argv*/[]) {
  throw std::logic_error("the main() of libsystemc was linked instead of the program's own");
}

namespace orrery {

class Simulation::Host : public sc_core::sc_module {
 public:
  SC_HAS_PROCESS(Host);
  explicit Host(const sc_core::sc_module_name& name) : sc_module(name), wake_("wake") {
    SC_METHOD(work);
    sensitive << wake_;
    dont_initialize();
  }

  Picoseconds run(Agenda& agenda, Pace pace) {
    if (agenda_ != nullptr) {
      throw std::logic_error("a simulation is running already");
    }
    if (agenda.next_time() == kNever) {
      return 0;
    }
    agenda_ = &agenda;
    pace_ = pace;
    base_ = sc_core::sc_time_stamp().value();
    now_ = 0;
    // Ahead of SystemC's time all may be done at its present one.
    notify(pace == Pace::kRunAhead ? 0 : agenda.next_time());
    if (!error_) {
      sc_core::sc_start();
    }
    agenda_ = nullptr;
    if (error_) {
      std::rethrow_exception(std::exchange(error_, nullptr));
    }
    return now_;
  }

 private:
  void work() {
    // An exception that leaves an SC_METHOD becomes an sc_report and loses its type, so it travels
    // in error_.
    try {
      now_ = systemc_time();
      Picoseconds next = agenda_->next_time();
      const Picoseconds horizon = pace_ == Pace::kRunAhead ? foreign_activity() : now_;
      while (next != kNever && (next <= now_ || next < horizon)) {
        now_ = next;
        agenda_->execute(now_);
        next = agenda_->next_time();
      }
      if (next != kNever) {
        notify(next);
      } else if (now_ > systemc_time() && (pace_ == Pace::kLockstep || fits(now_))) {
        notify(now_);  // nothing is left to do, but SystemC's time has to arrive
      }
    } catch (...) {
      error_ = std::current_exception();
    }
  }

  /// SystemC's time in the time of the run.
  Picoseconds systemc_time() const { return sc_core::sc_time_stamp().value() - base_; }

  /// When SystemC has something to do that is not ours; our own event is not pending while we run.
  Picoseconds foreign_activity() const {
    if (!sc_core::sc_pending_activity()) return kNever;
    return systemc_time() + sc_core::sc_time_to_pending_activity().value();
  }

  /// SystemC's time wraps around silently (measured with 2.3.4), so the sum is checked here. What
  /// ran ahead of it with nobody to wait for needs no place in it: a process may run any number of
  /// days.
  bool fits(Picoseconds time) const { return time <= ~std::uint64_t{0} - base_; }

  void notify(Picoseconds time) {
    if (!fits(time)) {
      error_ = std::make_exception_ptr(
          std::overflow_error("the simulated times of this process exceed 2^64 ps"));
      return;
    }
    wake_.notify(sc_core::sc_time::from_value(time - systemc_time()));
  }

  sc_core::sc_event wake_;
  Agenda* agenda_ = nullptr;
  Pace pace_ = Pace::kRunAhead;
  std::exception_ptr error_;
  Picoseconds base_ = 0;  ///< SystemC's time when the run began
  Picoseconds now_ = 0;   ///< time of the run
};

Simulation::Simulation() {
  // Read by SystemC before it prints its banner; the result alone belongs on stdout.
  ::setenv("SYSTEMC_DISABLE_COPYRIGHT_MESSAGE", "1", 1);
  host_ = new Host("engine");
}

Simulation& Simulation::instance() {
  static Simulation* const simulation = new Simulation;
  return *simulation;
}

Picoseconds Simulation::run(Agenda& agenda, Pace pace) { return host_->run(agenda, pace); }

}  // namespace orrery
