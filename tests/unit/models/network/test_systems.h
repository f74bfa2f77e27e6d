// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "sim/machine/system_config.h"
#include "sim/units/units.h"

namespace orrery::testing {

using namespace orrery::literals;

/// Links at their line rates (efficiency 1) and round latencies, so that times can be written down
/// by hand.
inline constexpr Seconds kScaleUpLatency = 1_us;
inline constexpr Seconds kScaleOutLatency = 5_us;

inline SystemConfig ideal_system(int accelerators, int per_node, BytesPerSecond scale_up, int links,
                                 BytesPerSecond scale_out) {
  SystemConfig system;
  system.name = "test";
  system.accelerators.value = accelerators;
  system.accelerators_per_node = per_node;
  system.accelerator.scale_up.bandwidth.value = scale_up;
  system.accelerator.scale_up.links.value = links;
  system.accelerator.scale_out.bandwidth.value = scale_out;
  system.scale_up.latency.value = kScaleUpLatency;
  system.scale_up.efficiency.value = 1;
  system.scale_out.latency.value = kScaleOutLatency;
  system.scale_out.efficiency.value = 1;
  return system;
}

/// 8 GPUs, 18 links of 25 GB/s to 4 chips as 5, 4, 4, 5; a 400 Gb/s NIC each (NVIDIA DGX H100 user
/// guide).
inline SystemConfig dgx_h100() {
  SystemConfig system = ideal_system(8, 8, 450_GBps, 18, 400_Gbitps);
  system.scale_up.kind = "nvswitch";
  system.scale_up.links_per_switch = {5, 4, 4, 5};
  return system;
}

/// 8 GPUs, 2 links of 25 GB/s to each of 6 chips; a 200 Gb/s NIC each (NVIDIA DGX A100 white
/// paper).
inline SystemConfig dgx_a100() {
  SystemConfig system = ideal_system(8, 8, 300_GBps, 12, 200_Gbitps);
  system.scale_up.kind = "nvswitch";
  system.scale_up.links_per_switch.assign(6, 2);
  return system;
}

/// 72 GPUs in trays of 4, one link of 50 GB/s to each of 18 chips (NVIDIA GB200 NVL72 reference
/// architecture).
inline SystemConfig nvl72() {
  SystemConfig system = ideal_system(72, 4, 900_GBps, 18, 400_Gbitps);
  system.scale_up.kind = "nvswitch";
  system.scale_up.links_per_switch.assign(18, 1);
  return system;
}

/// 72 packages, one link of 50 GB/s to each of 36 chips (NVIDIA Vera Rubin NVL72).
inline SystemConfig vr_nvl72() {
  SystemConfig system = ideal_system(72, 4, 1800_GBps, 36, 1600_Gbitps);
  system.scale_up.kind = "nvswitch";
  system.scale_up.links_per_switch.assign(36, 1);
  return system;
}

/// `nodes` boards of 8 packages of 2 dies; per die one link of 28 GB/s to each of `planes` L1 chips
/// (CloudMatrix384: 48 boards, 7 planes, 16 L2 chips; Zuo et al., arXiv 2506.12708).
inline SystemConfig unified_bus(int nodes, int packages_per_node, int planes, int l2_switches) {
  SystemConfig system = ideal_system(nodes * packages_per_node, packages_per_node,
                                     28_GBps * (2.0 * planes), 2 * planes, 400_Gbitps);
  system.scale_up.kind = "unified_bus";
  system.scale_up.planes = planes;
  system.scale_up.l2_switches = l2_switches;
  system.accelerator.dies = 2;
  system.accelerator.die_to_die.value = 270_GBps;
  return system;
}
inline SystemConfig cm384() { return unified_bus(48, 8, 7, 16); }

}  // namespace orrery::testing
