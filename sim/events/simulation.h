// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "sim/events/event_queue.h"
#include "sim/units/time.h"

namespace orrery {

/// What one run has to do, in its own time from 0. Holds its events itself, usually in an
/// EventQueue.
class Agenda {
 public:
  virtual ~Agenda() = default;

  /// When something happens next; kNever when the run is over. Never earlier than the last
  /// execute().
  virtual Picoseconds next_time() const = 0;
  /// Does all that is due at `now`; afterwards next_time() is later than `now`.
  virtual void execute(Picoseconds now) = 0;
};

/// How closely SystemC's time follows that of an agenda.
enum class Pace {
  /// Each item executes at its own sc_time_stamp(): for agendas that talk to other SystemC modules.
  kLockstep,
  /// Items execute one after the other up to the next activity that SystemC has pending elsewhere,
  /// and SystemC's time catches up then, at the end as far as it can count (2^64 ps). Same items,
  /// same times, same order; saves some 40 ns for each distinct time.
  kRunAhead,
};

/// The SystemC kernel of this process. There is one: a second simulation context is not part of
/// IEEE 1666, and modules cannot be added once time has run. So one host module stays elaborated,
/// and every run brings new data.
///
/// SystemC sees one SC_METHOD and one sc_event for all of an agenda: its own queue of one sc_event
/// per process costs 10 times more at 100,000 pending events, and its order of equal times is not
/// first-in-first-out. Other SystemC modules can take part: see Pace.
class Simulation {
 public:
  static Simulation& instance();

  Simulation(const Simulation&) = delete;
  Simulation& operator=(const Simulation&) = delete;

  /// Runs the agenda until nothing is left, and returns the time of its last item. May be called
  /// any number of times; SystemC's time goes on where the previous run ended.
  /// @throws what the agenda throws, with its type; the next run is not affected.
  /// @throws std::overflow_error when SystemC has to follow (in lockstep, or beside other modules)
  /// and the times of all runs of the process exceed its 2^64 ps.
  /// @throws std::logic_error when called from within a run.
  Picoseconds run(Agenda& agenda, Pace pace = Pace::kRunAhead);

 private:
  Simulation();
  ~Simulation() = default;  // never: SystemC's own statics may be gone at exit

  class Host;
  Host* host_;
};

}  // namespace orrery
