// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "sim/events/event_queue.h"
#include "sim/graph/costs.h"
#include "sim/replay/huge_pages.h"
#include "sim/replay/replay.h"

namespace orrery {

/// What transfers in flight take of the device of each actor, and how far the kernels beside them
/// have come.
///
/// A kernel works off its time alone: at full speed while nothing is taken of its device, at 1 /
/// slowdown of it otherwise. Each has one event that counts, or kernels that follow one another
/// have one together. Where a load eases, so that the kernel ends earlier than that, another is
/// queued and counts instead; where one grows, the event finds the kernel unfinished and is queued
/// again.
class DeviceSharing {
 public:
  /// @param ends_kind of the events that it puts on the queue: their target is the stream
  DeviceSharing(std::size_t actors, std::uint32_t streams, SlowdownModel& slowdowns,
                EventQueue& queue, std::uint16_t ends_kind);

  /// A kernel that alone takes `duration` starts to work on a stream (actor * streams + stream of
  /// the actor), now or later. Its end has to be queued.
  void begin(std::uint32_t stream, KernelId kernel, Picoseconds begin, Picoseconds duration);
  /// Another one takes the place of the kernel on a stream.
  void follow(std::uint32_t stream, KernelId kernel, Picoseconds begin, Picoseconds duration);
  /// When a kernel would end that began on a stream at a time from now on, if no load changes.
  Picoseconds end_of(std::uint32_t stream, KernelId kernel, Picoseconds begin,
                     Picoseconds duration);
  /// End of the kernel on a stream, if no load changes.
  Picoseconds end(std::uint32_t stream) const { return work_[stream].end; }
  /// Queues the event that counts: the end of the kernel on a stream or, later, of one that
  /// follows.
  void queue_end(std::uint32_t stream, Picoseconds end);
  /// Queues the end of the kernel on a stream, which counts instead of what is queued.
  void replace_end(std::uint32_t stream);
  /// Whether an event is the one that counts.
  bool counts(const Event& event) const {
    return (devices_[event.target / streams_].running & bit(event.target)) != 0 &&
           event.argument == work_[event.target].event;
  }
  /// The event that counts is due: whether the kernel of its stream has ended.
  bool ends(const Event& event);
  /// What the kernel that has ended last on a stream took longer than alone.
  Picoseconds longer(std::uint32_t stream) const;

  /// Fetches what an event of a stream will touch.
  void prefetch(std::uint32_t stream) const {
    __builtin_prefetch(&work_[stream]);
    __builtin_prefetch(&devices_[stream / streams_]);
  }

  /// A transfer of the actor begins, or ends, to take `load`.
  void load(std::uint32_t actor, const DeviceLoad& load, bool begins, Picoseconds now);
  const DeviceLoad& load_of(std::uint32_t actor) const { return devices_[actor].load; }

 private:
  static constexpr std::uint32_t kFree = 0;  ///< the level without a load
  static constexpr std::uint32_t kUnknown = ~std::uint32_t{0};

  struct Device {
    DeviceLoad load;
    std::uint32_t level = kFree;  ///< index of `load` in slowdowns_, once a kernel asks
    std::uint32_t running = 0;    ///< streams with a kernel, a bit each
  };
  struct alignas(64) Work {
    KernelId kernel = 0;
    std::uint16_t event = 0;  ///< argument of the event that counts (65,536 ones later it recurs)
    Picoseconds begun = 0;
    Picoseconds duration = 0;  ///< time alone
    Picoseconds since = 0;     ///< `left` is as of then
    Picoseconds end = 0;       ///< if nothing changes
    Picoseconds queued = 0;    ///< time of the event that counts
    double left = 0;           ///< time alone that is left, in ps
    double slowdown = 1;
  };

  std::uint32_t bit(std::uint32_t stream) const { return 1U << stream % streams_; }
  double slowdown(Device& device, KernelId kernel);
  std::uint32_t level_of(const DeviceLoad& load);
  /// A kernel on a stream under today's load, and when it ends.
  void set(std::uint32_t stream, KernelId kernel, Picoseconds begin, Picoseconds duration,
           Work& work);
  static Picoseconds end_of(const Work& work);
  void change_speed(std::uint32_t stream, double slowdown, Picoseconds now);

  SlowdownModel& model_;
  EventQueue& queue_;
  std::uint16_t ends_kind_;
  std::uint32_t streams_;                           ///< streams per actor
  std::vector<Device, HugePages<Device>> devices_;  ///< devices by actor
  std::vector<Work, HugePages<Work>> work_;         ///< work by actor, then stream
  std::map<DeviceLoad, std::uint32_t> levels_;
  std::vector<std::vector<double>> slowdowns_;  ///< factors by level and kernel; 0: not asked for
};

}  // namespace orrery
