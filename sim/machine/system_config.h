// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sim/machine/accelerator_config.h"
#include "sim/machine/expert_exchange_config.h"
#include "sim/machine/installation_config.h"
#include "sim/machine/scale_up_config.h"

namespace orrery {

/// Whether switches between systems reduce (SHARP): not; they can, and the library leaves it unless
/// it is told otherwise, as NCCL does (NCCL_COLLNET_ENABLE is 0); it may choose it by itself.
enum class NetworkReduction : std::uint8_t { kNone, kAvailable, kAutomatic };

/// Which of the equally short paths through the network between systems a message takes.
enum class Routing : std::uint8_t {
  kAdaptive,       ///< all, equally: ideal spraying of packets
  kEcmp,           ///< path by a hash of source, destination and flow
  kDeterministic,  ///< path by the destination's number (D-mod-k)
};

/// The network between systems: NICs, leaves, spines and cores. Bandwidth per package is the
/// accelerator's `scale_out`. `kind`:
///  - rail_optimized: NIC i of every node goes to leaf i of its group;
///  - clos: all NICs of a group go to one leaf (top of the rack);
///  - multi_plane: as rail_optimized, and the rails have spines of their own.
struct ScaleOutConfig {
  std::string kind = "rail_optimized";
  int nodes_per_leaf_group = 32;  ///< systems whose NICs share leaf switches (a scalable unit)
  std::vector<int> switch_ports;  ///< ports of a leaf, spine and core, at the rate of a NIC; one
                                  ///< for all. Empty: as many as it takes
  int leaf_groups_per_pod = 0;    ///< groups that share spines; 0: as many as the ports allow
  /// NIC bandwidth below a leaf, and below a pod of spines, over that upwards: above 1 is a
  /// bottleneck.
  std::vector<double> oversubscription;
  int planes = 0;                        ///< multi_plane: trees; 0: one a rail
  Routing routing = Routing::kAdaptive;  ///< path of one message
  int flows = 1;                         ///< ecmp: hashed parts of a message
  NetworkReduction reduction = NetworkReduction::kNone;
  /// Payload that the switches reduce a NIC, one way; 0: as fast as it comes.
  Fact<BytesPerSecond> reduction_bandwidth;
  /// Packages that share a NIC of `scale_out` bandwidth (DGX-1: 2 behind a PCIe switch). A node
  /// with fewer has one NIC: SystemConfig::packages_per_nic().
  int packages_per_nic = 1;
  bool rail_aware = true;  ///< messages change rails inside their node (NCCL's PXN), not on spines
  Fact<Seconds> latency;
  /// Latency of each link that a route has beyond the shortest between two systems, which `latency`
  /// has in it; 0: not known. Links inside systems on such a route cost that of the scale-up
  /// fabric.
  Fact<Seconds> hop_latency;
  Fact<double> efficiency;
  static const config::Schema<ScaleOutConfig>& schema();
};

struct HostConfig {
  Fact<int> processors;  ///< CPUs in the system
  std::string memory_kind;
  Fact<Bytes> memory;                     ///< memory of all CPUs together
  Fact<BytesPerSecond> memory_bandwidth;  ///< bytes/s of the memory of a host board; 0: not known
  bool links = false;  ///< the accelerators' links to their host board are part of the network
  /// Packages behind one PCIe switch, which has one link of a package's bandwidth to the host board
  /// (DGX A100: 2); 0: each has its own.
  int packages_per_switch = 0;
  BytesPerSecond network;  ///< bytes/s of a host board, to storage and control; 0: none
  static const config::Schema<HostConfig>& schema();
};

/// A system as sold: a server or a supernode. Several copies are joined by the scale-out network.
struct SystemConfig {
  std::string id;  ///< "dgx_h100": what configurations call it
  std::string name;
  AcceleratorConfig accelerator;
  Fact<int> accelerators;         ///< packages in the system
  int accelerators_per_node = 0;  ///< packages behind one host board; 0: see packages_per_node
  ScaleUpConfig scale_up;
  ScaleOutConfig scale_out;
  /// Dispatch and combine; absent: priced by the latencies and efficiencies of the fabrics.
  std::optional<ExpertExchangeConfig> expert_exchange;
  HostConfig host;
  /// Provisioned power: what a data centre reserves for the system, network, storage and cooling
  /// included. Absent: nobody tells.
  std::optional<Fact<Watts>> all_in_power;
  /// Nameplate power: the most that the system itself draws, by its data sheet.
  std::optional<Fact<Watts>> nameplate_power;
  /// Drawn at load by all of the system but its accelerators: processors, memory, switches,
  /// adapters, fans and conversion. Absent: all_in_power less the design power of the accelerators.
  std::optional<Fact<Watts>> host_power;
  /// The machine that was built of copies of it; absent: it is sold to many.
  std::optional<InstallationConfig> installation;
  std::vector<std::string>
      remarks;  ///< what readers of published tables should know; `describe` prints them
  static const config::Schema<SystemConfig>& schema();

  int ranks() const { return accelerators.value * accelerator.dies; }
  /// Packages behind one host board: as written, else 8, or all of a smaller system.
  int packages_per_node() const;
  int ranks_per_node() const { return packages_per_node() * accelerator.dies; }
  /// Packages that share a NIC: `scale_out.packages_per_nic`, but no more than a node has.
  int packages_per_nic() const;
};

namespace config {

template <>
struct EnumNames<NetworkReduction> {
  static constexpr std::pair<NetworkReduction, const char*> values[] = {
      {NetworkReduction::kNone, "none"},
      {NetworkReduction::kAvailable, "available"},
      {NetworkReduction::kAutomatic, "automatic"},
  };
};

template <>
struct EnumNames<Routing> {
  static constexpr std::pair<Routing, const char*> values[] = {
      {Routing::kAdaptive, "adaptive"},
      {Routing::kEcmp, "ecmp"},
      {Routing::kDeterministic, "deterministic"},
  };
};

}  // namespace config

}  // namespace orrery
