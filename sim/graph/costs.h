// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sim/graph/link_loads.h"
#include "sim/units/time.h"
#include "sim/units/units.h"

namespace orrery {

/// What limits a kernel.
enum class Bound : std::uint8_t {
  kTensor,   ///< matrix units
  kVector,   ///< vector lanes and special functions
  kCache,    ///< L2 cache
  kMemory,   ///< device memory of whatever kind; "HBM" in results
  kHost,     ///< link to the host
  kEngine,   ///< copy engines
  kLatency,  ///< no rate: launch, filling and draining pipelines, steps that wait for each other
};
const char* to_string(Bound bound);

/// What a number rests on.
enum class Provenance : std::uint8_t {
  kMeasured,      ///< a measurement of this very thing
  kCalibrated,    ///< a model fitted on measurements that reach around it
  kAnalytic,      ///< datasheet and priors
  kExtrapolated,  ///< a fitted model outside what it was fitted on
};
const char* to_string(Provenance provenance);

/// How much of the machine a kernel model simulates.
enum class Fidelity : std::uint8_t {
  kAuto,    ///< whatever predicts a kernel better
  kClosed,  ///< closed form
  kTile,    ///< thread blocks on SMs as discrete events, where the kernel's family has them
};
const char* to_string(Fidelity fidelity);

/// Price of one kernel, from a kernel model.
struct KernelCost {
  Picoseconds duration = 0;  ///< launch included
  Picoseconds launch = 0;    ///< the part that is launch overhead
  Bound bound = Bound::kMemory;
  Provenance provenance = Provenance::kAnalytic;
  Fidelity fidelity = Fidelity::kClosed;  ///< what the duration comes from
  /// Clock of the units while the kernel runs, over the boost clock, as far as fits tell.
  double clock = 1;
  /// Bytes that the last cache gives the units, its own or the memory's; 0: what the memory moves.
  Bytes cache = Bytes();
  /// Bytes from and to the memory; none: all that the kernel reads and writes.
  std::optional<Bytes> memory = {};
  /// Products and exponentials that the units compute over those that the kernel counts: attention
  /// under a mask computes the tiles that it cuts whole.
  double computed = 1;
  /// What the host of a rank takes to issue the kernel, where that is longer than Costs::enqueue.
  Picoseconds issue = 0;
  bool host_waits = false;  ///< the host issues nothing more until the kernel has ended
  /// The duration is given, by a recording or a nameplate: neither the clock nor transfers beside
  /// the kernel change it.
  bool fixed = false;
};

/// What transfers take of the device of each of their ranks while they are in flight.
struct DeviceLoad {
  std::int64_t units = 0;   ///< SMs that their kernels hold, latency included
  std::int64_t memory = 0;  ///< bytes/s of the device memory, read and written

  bool none() const { return units == 0 && memory == 0; }
  DeviceLoad& operator+=(const DeviceLoad& other) {
    units += other.units;
    memory += other.memory;
    return *this;
  }
  DeviceLoad& operator-=(const DeviceLoad& other) {
    units -= other.units;
    memory -= other.memory;
    return *this;
  }
  auto operator<=>(const DeviceLoad&) const = default;  // NOLINT(modernize-use-nullptr)
};

/// Price of one transfer, from the network model: a fixed latency, then a fluid that loads links in
/// fixed proportion and shares them max-min fairly with whatever else is in flight.
struct TransferCost {
  Picoseconds latency = 0;
  LinkLoads loads;
  /// The most that a protocol, or a copy engine, carries on the most loaded link (of an image); 0:
  /// no limit. What the transfer leaves of a link goes to the others.
  BytesPerSecond rate_limit{};
  DeviceLoad device = {};  ///< whole numbers, so that loads add up and cancel exactly
  /// Bytes on the most loaded link of one of its images, where it stands for several: each takes
  /// the share of a flow of the links that they have in common. 0: all of it is one flow.
  double image = 0;
};

/// From `time` on the link carries `capacity`; 0: it is down.
struct LinkEvent {
  Picoseconds time = 0;
  std::uint32_t link = 0;
  BytesPerSecond capacity;
  /// Transfers that take another way from then on, whether in flight or later.
  struct Reroute {
    std::uint32_t transfer = 0;
    LinkLoads loads;   ///< loads of the whole transfer
    double image = 0;  ///< bytes of an image, see TransferCost::image
  };
  std::vector<Reroute> reroutes;
};

/// Prices of everything in a Program, by id.
struct Costs {
  std::vector<KernelCost> kernels;
  std::vector<TransferCost> transfers;
  std::vector<BytesPerSecond> links;  ///< capacity by link
  /// What the host of a rank takes to enqueue a kernel, one after the other from the start of the
  /// program; no kernel starts before. 0: all are there at the start.
  Picoseconds enqueue = 0;
  std::vector<LinkEvent> link_events;  ///< events in any order; those of one time apply as listed
};

}  // namespace orrery
