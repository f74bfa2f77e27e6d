// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>
#include <chrono>
#include <deque>
#include <functional>

#include <cstdint>
#include <vector>

namespace orrery {

/// Bytes that processes may still take before something has to go: what the machine has available,
/// or the memory group of this process where that leaves less.
std::int64_t available_memory();

/// Resident bytes of a process; 0: this one. 0 where it is gone.
std::int64_t resident_bytes(pid_t process);

/// Begins the largest resident memory of this process anew (getrusage), so that it is that of one
/// point; where the kernel does not let it, it stays that of the whole process.
void begin_peak_memory();

/// Where memory runs out, the kernel is to end this process rather than another one.
void go_first_without_memory();

/// Whether there is memory for one more point beside those that run. What a point will take is what
/// the largest of the last ones took and of those that run have by now, in bytes that its worker
/// had not before. While no point is done, that is its limit where it has one; without, the first
/// point runs alone for a moment.
class MemoryAdmission {
 public:
  using Available = std::function<std::int64_t()>;
  /// @param available bytes that may still be taken
  explicit MemoryAdmission(Available available) : available_(std::move(available)) {}

  /// A point took so much.
  void add(std::int64_t bytes);
  /// What points that run have taken was read anew, so the available memory is read again, too:
  /// bytes that they took since it was read would count as available a second time.
  void look_again() { looked_ = {}; }
  /// @param running what points that run have taken until now
  /// @param limit bytes that the next point may take; 0: as many as it does
  /// @param alone how long the longest of them has been running
  bool admits(const std::vector<std::int64_t>& running, std::int64_t limit,
              std::chrono::nanoseconds alone);

 private:
  using Clock = std::chrono::steady_clock;

  Available available_;
  std::deque<std::int64_t> taken_;  ///< what the last points took
  /// Most that a running point was seen to have: one that has just ended has nothing any more, and
  /// what it took is not known yet.
  std::int64_t seen_ = 0;
  std::int64_t left_ = 0;  ///< what was available at the last look
  Clock::time_point looked_ = {};
};

}  // namespace orrery
