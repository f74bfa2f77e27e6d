// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "sim/machine/system_config.h"

namespace orrery {

/// How the source of a start begins that nobody published.
inline constexpr const char* kAssumedStart = "floor: ";
/// The longest published start of a collective inside a system: oneCCL on Arc Pro B70
/// (configs/systems/intel/aurora_node.yaml). NeuronX takes 18 us, RCCL's tuner expects 12, NCCL
/// takes 4 to 9.
inline constexpr Seconds kLongestStart = Seconds(39e-6);

/// Gives a system of several ranks without protocols and without `scale_up.launch` the least that a
/// collective can start in: the launch of a kernel and a message by which ranks tell each other
/// that their buffers are ready. Networks of `dimensions` say what each of their phases starts in.
inline void assume_start(SystemConfig& system) {
  ScaleUpConfig& fabric = system.scale_up;
  if (fabric.protocols || !fabric.keys->has_links() || fabric.keys->says_start()) return;
  if (system.ranks() < 2 || fabric.launch.value > Seconds(0) || !fabric.launch.source.empty())
    return;
  fabric.launch.value = system.accelerator.kernel.launch.value + fabric.latency.value;
  fabric.launch.source = std::string(kAssumedStart) + "a kernel's launch and a message";
}

/// Whether collectives of the system start in a floor that stands for a figure nobody published.
inline bool start_is_assumed(const SystemConfig& system) {
  return system.scale_up.launch.source.starts_with(kAssumedStart);
}

}  // namespace orrery
