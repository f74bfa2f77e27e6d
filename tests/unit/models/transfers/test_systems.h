// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "models/topologies/dimensions.h"
#include "models/topologies/graph_fabric.h"
#include "sim/config/load.h"
#include "sim/machine/system_config.h"
#include "sim/units/units.h"

namespace orrery::fixtures {

using namespace orrery::literals;

/// Links at their line rates (efficiency 1) and round latencies, so that times can be written down
/// by hand.
inline constexpr Seconds kScaleUpLatency = 1_us;
inline constexpr Seconds kScaleOutLatency = 5_us;

/// As YAML writes it.
inline std::string list_of(const std::vector<int>& numbers) {
  std::string text;
  for (const int number : numbers) text += (text.empty() ? "[" : ", ") + std::to_string(number);
  return text + "]";
}

/// Gives a system another topology inside, with the keys of YAML: "{torus: [4, 4]}".
inline void set_fabric(SystemConfig& system, const std::string& kind, const std::string& keys) {
  config::Diagnostics diagnostics;
  const config::Node written = config::parse_yaml(keys, "keys of " + kind, diagnostics);
  system.scale_up.set_kind(kind);
  const ScaleUpEntry& topology = ScaleUpRegistry::items().at(kind).entry;
  const config::Node whole =
      config::complete(written, topology.record(), diagnostics, config::default_library());
  config::fill(topology.keys_in(&system.scale_up), whole, topology.record(), diagnostics);
  diagnostics.throw_if_errors();
}

/// The keys of the topology, to change: a copy that no other system has.
template <class Topology>
Topology& fabric_keys(SystemConfig& system) {
  auto keys = std::make_shared<Topology>(dynamic_cast<const Topology&>(*system.scale_up.keys));
  Topology& changed = *keys;
  system.scale_up.keys = std::move(keys);
  return changed;
}

inline const std::vector<WireConfig>& wires_of(const SystemConfig& system) {
  return dynamic_cast<const WiredTopology&>(*system.scale_up.keys).wires;
}

/// Gives a system a mesh or graph of these links.
inline void set_wires(SystemConfig& system, const std::string& kind,
                      const std::vector<WireConfig>& wires) {
  system.scale_up.set_kind(kind);  // keys that no other system has yet
  const_cast<std::vector<WireConfig>&>(wires_of(system)) = wires;
}

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
  set_fabric(system, "nvswitch", "{links_per_switch: [5, 4, 4, 5]}");
  return system;
}

/// 8 GPUs, 2 links of 25 GB/s to each of 6 chips; a 200 Gb/s NIC each (NVIDIA DGX A100 white
/// paper).
inline SystemConfig dgx_a100() {
  SystemConfig system = ideal_system(8, 8, 300_GBps, 12, 200_Gbitps);
  set_fabric(system, "nvswitch", "{links_per_switch: [2, 2, 2, 2, 2, 2]}");
  return system;
}

/// 8 V100 of 6 links of 25 GB/s in a hybrid cube mesh: two rings of doubled and single links
/// (NVIDIA DGX-1 with Tesla V100 system architecture, WP-08437). 4 EDR adapters: half of one a GPU.
inline SystemConfig dgx_1() {
  SystemConfig system = ideal_system(8, 8, 150_GBps, 6, 50_Gbitps);
  std::vector<WireConfig> wires;
  const auto join = [&wires](int a, int b, int links) {
    wires.push_back({"accelerator" + std::to_string(a),
                     "accelerator" + std::to_string(b),
                     LinkKind::kScaleUp,
                     links,
                     {}});
  };
  for (const int board : {0, 4}) {
    join(board, board + 1, 1);
    join(board, board + 2, 1);
    join(board, board + 3, 2);
    join(board + 1, board + 2, 2);
    join(board + 1, board + 3, 1);
    join(board + 2, board + 3, 1);
  }
  for (int gpu = 0; gpu < 4; ++gpu) join(gpu, gpu + 4, 2);
  set_wires(system, "mesh", wires);
  return system;
}

/// 2 boards of 8 V100 and 6 chips, 8 trunks between chip s of both (NVIDIA NVSwitch at Hot Chips
/// 30).
inline SystemConfig dgx_2() {
  SystemConfig system = ideal_system(16, 16, 150_GBps, 6, 100_Gbitps);
  set_fabric(system, "nvswitch", "{links_per_switch: [1, 1, 1, 1, 1, 1], boards: 2, trunks: 8}");
  return system;
}

/// 8 GPUs, each joined to each other by one link of 64 GB/s (AMD CDNA 3 white paper).
inline SystemConfig mi300x() {
  SystemConfig system = ideal_system(8, 8, 448_GBps, 7, 400_Gbitps);
  system.scale_up.set_kind("mesh");
  return system;
}

/// 8 GPUs, 9 links of 50 GB/s to each of 2 chips (NVIDIA DGX B200 user guide).
inline SystemConfig dgx_b200() {
  SystemConfig system = ideal_system(8, 8, 900_GBps, 18, 400_Gbitps);
  set_fabric(system, "nvswitch", "{links_per_switch: [9, 9]}");
  return system;
}

/// TPU packages in a torus, hosts of 4; a link of `link` to each neighbour.
inline SystemConfig tpu(const std::vector<int>& sizes, BytesPerSecond link,
                        const std::string& more_keys = "") {
  const int links = 2 * static_cast<int>(sizes.size());
  int packages = 1;
  for (const int size : sizes) packages *= size;
  SystemConfig system =
      ideal_system(packages, 4, link * static_cast<double>(links), links, 50_Gbitps);
  set_fabric(system, "torus", "{torus: " + list_of(sizes) + more_keys + "}");
  return system;
}

/// A network of several dimensions whose packages have the ports that they need.
inline SystemConfig with_dimensions(const std::vector<DimensionConfig>& dimensions) {
  int packages = 1;
  BytesPerSecond line;
  for (const DimensionConfig& dimension : dimensions) {
    packages *= dimension.size;
    line += dimension.bandwidth.value * static_cast<double>(dimension.links_of_rank());
  }
  SystemConfig system = ideal_system(packages, packages, line, 1, 50_Gbitps);
  system.scale_up.set_kind("dimensions");
  fabric_keys<DimensionsTopology>(system).dimensions.axes = dimensions;
  return system;
}

inline DimensionConfig dimension(DimensionShape shape, int size, BytesPerSecond link,
                                 Seconds latency = Seconds(0),
                                 LineAlgorithm algorithm = LineAlgorithm::kRing) {
  DimensionConfig dimension;
  dimension.shape = shape;
  dimension.size = size;
  dimension.bandwidth.value = link;
  dimension.latency.value = latency;
  dimension.algorithm = algorithm;
  return dimension;
}

/// 72 GPUs in trays of 4, one link of 50 GB/s to each of 18 chips (NVIDIA GB200 NVL72 reference
/// architecture).
inline SystemConfig nvl72() {
  SystemConfig system = ideal_system(72, 4, 900_GBps, 18, 400_Gbitps);
  set_fabric(system, "nvswitch", "{links_per_switch: " + list_of(std::vector(18, 1)) + "}");
  return system;
}

/// 72 packages, one link of 50 GB/s to each of 36 chips (NVIDIA Vera Rubin NVL72).
inline SystemConfig vr_nvl72() {
  SystemConfig system = ideal_system(72, 4, 1800_GBps, 36, 1600_Gbitps);
  set_fabric(system, "nvswitch", "{links_per_switch: " + list_of(std::vector(36, 1)) + "}");
  return system;
}

/// `nodes` boards of 8 packages of 2 dies; per die one link of 28 GB/s to each of `planes` L1 chips
/// (CloudMatrix384: 48 boards, 7 planes, 16 L2 chips; Zuo et al., arXiv 2506.12708).
inline SystemConfig unified_bus(int nodes, int packages_per_node, int planes, int l2_switches) {
  SystemConfig system = ideal_system(nodes * packages_per_node, packages_per_node,
                                     28_GBps * (2.0 * planes), 2 * planes, 400_Gbitps);
  set_fabric(
      system, "unified_bus",
      "{planes: " + std::to_string(planes) + ", l2_switches: " + std::to_string(l2_switches) + "}");
  system.accelerator.dies = 2;
  system.accelerator.die_to_die.value = 270_GBps;
  return system;
}
inline SystemConfig cm384() { return unified_bus(48, 8, 7, 16); }

/// With NCCL's protocols, their priors, and switches that reduce.
inline SystemConfig with_nccl(SystemConfig system) {
  system.scale_up.protocols.emplace();
  system.scale_up.protocols->in_switch_ranks = 5;
  system.scale_up.efficiency.value = 0.8;
  system.scale_up.switch_reduction = true;
  return system;
}

}  // namespace orrery::fixtures
