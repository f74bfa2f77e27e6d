// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "sim/events/event_queue.h"
#include "sim/graph/costs.h"
#include "sim/replay/replay.h"

namespace orrery {

/// What transfers in flight take of the device of each actor, and how far the kernels beside them
/// have come.
///
/// A kernel works off its time alone: at full speed while nothing is taken of its device, at 1 /
/// slowdown of it otherwise. Each has one event that counts; where a load eases, so that the kernel
/// ends earlier than that, another is queued and counts instead; where one grows, the event finds
/// the kernel unfinished and is queued again.
class DeviceSharing {
 public:
  /// @param ends_kind of the events that it puts on the queue: their target is the stream
  DeviceSharing(std::size_t actors, std::uint32_t streams, SlowdownModel& slowdowns,
                EventQueue& queue, std::uint16_t ends_kind);

  /// A kernel that alone takes `duration` starts to work on a stream (actor * streams + stream of
  /// the actor), now or later.
  void begin(std::uint32_t stream, KernelId kernel, Picoseconds begin, Picoseconds duration);
  /// An event is due: whether the kernel of its stream has ended.
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
    std::uint32_t kernels = 0;    ///< kernels that run
  };
  struct alignas(64) Work {
    KernelId kernel = 0;
    bool active = false;
    std::uint16_t event = 0;  ///< argument of the event that counts (65,536 ones later it recurs)
    Picoseconds begun = 0;
    Picoseconds duration = 0;  ///< time alone
    Picoseconds since = 0;     ///< `left` is as of then
    Picoseconds end = 0;       ///< if nothing changes
    Picoseconds queued = 0;    ///< time of the event that counts
    double left = 0;           ///< time alone that is left, in ps
    double slowdown = 1;
  };

  double slowdown(Device& device, KernelId kernel);
  std::uint32_t level_of(const DeviceLoad& load);
  Picoseconds end_of(const Work& work) const;
  void change_speed(std::uint32_t stream, double slowdown, Picoseconds now);
  void queue_end(std::uint32_t stream);

  SlowdownModel& model_;
  EventQueue& queue_;
  std::uint16_t ends_kind_;
  std::uint32_t streams_;        ///< streams per actor
  std::vector<Device> devices_;  ///< devices by actor
  std::vector<Work> work_;       ///< work by actor, then stream
  std::map<DeviceLoad, std::uint32_t> levels_;
  std::vector<std::vector<double>> slowdowns_;  ///< factors by level and kernel; 0: not asked for
};

}  // namespace orrery
