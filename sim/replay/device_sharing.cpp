// SPDX-License-Identifier: Apache-2.0
#include "sim/replay/device_sharing.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <stdexcept>

namespace orrery {

DeviceSharing::DeviceSharing(std::size_t actors, std::uint32_t streams, SlowdownModel& slowdowns,
                             EventQueue& queue, std::uint16_t ends_kind)
    : model_(slowdowns),
      queue_(queue),
      ends_kind_(ends_kind),
      streams_(streams),
      devices_(actors),
      work_(actors * streams),
      levels_{{DeviceLoad(), kFree}},
      slowdowns_(1) {}

void DeviceSharing::begin(std::uint32_t stream, KernelId kernel, Picoseconds begin,
                          Picoseconds duration) {
  devices_[stream / streams_].running |= bit(stream);
  follow(stream, kernel, begin, duration);
}

void DeviceSharing::follow(std::uint32_t stream, KernelId kernel, Picoseconds begin,
                           Picoseconds duration) {
  set(stream, kernel, begin, duration, work_[stream]);
}

void DeviceSharing::set(std::uint32_t stream, KernelId kernel, Picoseconds begin,
                        Picoseconds duration, Work& work) {
  work.kernel = kernel;
  work.begun = work.since = begin;
  work.duration = duration;
  work.left = static_cast<double>(duration);
  work.slowdown = slowdown(devices_[stream / streams_], kernel);
  work.end = end_of(work);
}

Picoseconds DeviceSharing::end_of(std::uint32_t stream, KernelId kernel, Picoseconds begin,
                                  Picoseconds duration) {
  Work work;
  set(stream, kernel, begin, duration, work);
  return work.end;
}

bool DeviceSharing::ends(const Event& event) {
  const Picoseconds end = work_[event.target].end;
  if (event.time < end) {
    queue_end(event.target, end);
    return false;
  }
  devices_[event.target / streams_].running &= ~bit(event.target);
  return true;
}

Picoseconds DeviceSharing::longer(std::uint32_t stream) const {
  const Work& work = work_[stream];
  return work.end - work.begun - work.duration;
}

void DeviceSharing::load(std::uint32_t actor, const DeviceLoad& load, bool begins,
                         Picoseconds now) {
  Device& device = devices_[actor];
  if (begins) {
    device.load += load;
  } else {
    device.load -= load;
  }
  device.level = device.load.none() ? kFree : kUnknown;
  for (std::uint32_t left = device.running; left != 0; left &= left - 1) {
    const std::uint32_t stream =
        actor * streams_ + static_cast<std::uint32_t>(std::countr_zero(left));
    change_speed(stream, slowdown(device, work_[stream].kernel), now);
  }
}

std::uint32_t DeviceSharing::level_of(const DeviceLoad& load) {
  const auto [entry, is_new] =
      levels_.try_emplace(load, static_cast<std::uint32_t>(slowdowns_.size()));
  if (is_new) slowdowns_.emplace_back();
  return entry->second;
}

double DeviceSharing::slowdown(Device& device, KernelId kernel) {
  if (device.level == kFree) return 1;
  if (device.level == kUnknown) device.level = level_of(device.load);
  std::vector<double>& factors = slowdowns_[device.level];
  if (factors.size() <= kernel) factors.resize(kernel + std::size_t{1});
  double& known = factors[kernel];
  if (known == 0) {
    known = model_.slowdown(kernel, device.load);
    if (!(known >= 1)) throw std::logic_error("a transfer that makes a kernel faster");
  }
  return known;
}

/// A kernel that was never slowed ends to the picosecond as it would alone, and none ends earlier.
Picoseconds DeviceSharing::end_of(const Work& work) {
  const Picoseconds alone = work.begun + work.duration;
  if (work.slowdown == 1 && work.since == work.begun) return alone;
  const double left = work.left * work.slowdown;
  if (!(left < static_cast<double>(kMaxTime))) {
    throw std::overflow_error("a kernel takes more than 2^63 ps beside transfers");
  }
  return std::max(alone, work.since + static_cast<Picoseconds>(std::llround(left)));
}

void DeviceSharing::change_speed(std::uint32_t stream, double slowdown, Picoseconds now) {
  Work& work = work_[stream];
  if (slowdown == work.slowdown) return;
  if (now > work.since) {
    work.left = std::max(0.0, work.left - static_cast<double>(now - work.since) / work.slowdown);
    work.since = now;
  }
  work.slowdown = slowdown;
  work.end = end_of(work);
  if (work.end < work.queued) replace_end(stream);
}

void DeviceSharing::replace_end(std::uint32_t stream) {
  ++work_[stream].event;
  queue_end(stream, work_[stream].end);
}

void DeviceSharing::queue_end(std::uint32_t stream, Picoseconds end) {
  Work& work = work_[stream];
  work.queued = end;
  queue_.push({end, stream, ends_kind_, work.event});
}

}  // namespace orrery
