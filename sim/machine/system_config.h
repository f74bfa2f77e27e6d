// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "sim/machine/accelerator_config.h"
#include "sim/machine/expert_exchange_config.h"

namespace orrery {

/// The scale-up fabric inside one system. `kind` names a topology (`describe topologies`):
///  - nvswitch: every package has `links_per_switch[s]` links to switch chip s (DGX H100: 5,4,4,5;
///  NVL72: 18 x 1);
///  - unified_bus: `planes` sub-planes; per plane one L1 chip a node and `l2_switches` L2 chips;
///  each die has one link
///    to the L1 chip of each plane, each L1 chip one link to each L2 chip of its plane;
///  - none: a system of one rank has no fabric.
struct ScaleUpConfig {
  std::string kind;
  std::vector<int> links_per_switch;  ///< nvswitch
  int planes = 0;                     ///< unified_bus
  int l2_switches = 0;                ///< unified_bus, per plane
  bool switch_reduction = false;      ///< nvswitch: the chips reduce and multicast (NVLS)
  Fact<Seconds>
      latency;  ///< of one step of a collective or message between two ranks, software included
  Fact<double> efficiency;  ///< payload share of the link bandwidth that collectives reach
  static const config::Schema<ScaleUpConfig>& schema();
};

/// The network between systems. `kind: rail_optimized`: NIC i of every node goes to leaf i of its
/// unit; leaves and spines form a non-blocking fat tree. Bandwidth per package is the accelerator's
/// `scale_out`.
struct ScaleOutConfig {
  std::string kind = "rail_optimized";
  int nodes_per_leaf_group = 32;  ///< nodes whose rails share leaf switches (a scalable unit)
  Fact<Seconds> latency;
  Fact<double> efficiency;
  static const config::Schema<ScaleOutConfig>& schema();
};

struct HostConfig {
  Fact<int> processors;  ///< CPUs in the system
  std::string memory_kind;
  Fact<Bytes> memory;  ///< of all of them
  static const config::Schema<HostConfig>& schema();
};

/// A system as sold: a server or a supernode. Several copies are joined by the scale-out network.
struct SystemConfig {
  std::string id;  ///< "dgx_h100": what configurations call it
  std::string name;
  AcceleratorConfig accelerator;
  Fact<int> accelerators;         ///< packages
  int accelerators_per_node = 8;  ///< packages behind one host board
  ScaleUpConfig scale_up;
  ScaleOutConfig scale_out;
  /// Of dispatch and combine; absent: priced by the latencies and efficiencies of the fabrics.
  std::optional<ExpertExchangeConfig> expert_exchange;
  HostConfig host;
  Fact<Watts> all_in_power;  ///< everything the system draws, network and storage included: a
                             ///< published input
  std::vector<std::string>
      remarks;  ///< what readers of published tables should know; `describe` prints them
  static const config::Schema<SystemConfig>& schema();

  int ranks() const { return accelerators.value * accelerator.dies; }
  int ranks_per_node() const { return accelerators_per_node * accelerator.dies; }
};

}  // namespace orrery
