// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sim/config/declared.h"
#include "sim/config/fact.h"
#include "sim/machine/accelerator_config.h"
#include "sim/machine/scale_up_config.h"
#include "sim/units/units.h"

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
  std::vector<int> switch_ports;  ///< ports of a leaf, spine and core; or one number for all
  int leaf_groups_per_pod = 0;    ///< groups that share spines; 0: as many as the ports allow
  std::vector<double>
      oversubscription;  ///< downlink over uplink bandwidth; more than 1 is a bottleneck
  int planes = 0;        ///< multi_plane: trees; 0: one a rail
  Routing routing = Routing::kAdaptive;  ///< path of one message
  int flows = 1;                         ///< ecmp: hashed parts of a message
  NetworkReduction reduction = NetworkReduction::kNone;
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

/// How lists of supercomputers count the fp64 peak of one system from its parts:
///
///   processors + accelerators x units x clock x unit_flops
struct ListedPeakConfig {
  Fact<double> unit_flops;           ///< fp64 FLOP of one unit of an accelerator in a clock
  Fact<FlopsPerSecond> processors;   ///< fp64 of all processors of a system
  std::optional<Fact<Hertz>> clock;  ///< clock of the units; absent: the accelerator's
  std::optional<Fact<FlopsPerSecond>> published;  ///< Rpeak of the whole machine
  static const config::Schema<ListedPeakConfig>& schema();
};

/// The machine that somebody built of copies of a system, and what is published of it. Simulations
/// read none of this: `nodes` of an experiment says how many copies run. `describe system` puts
/// what follows from the parts beside what is published.
struct InstallationConfig {
  std::string name;                           ///< "Frontier, Oak Ridge"
  Fact<int> systems;                          ///< copies of the system
  std::optional<Fact<Watts>> processors;      ///< design power of the processors of a system
  std::optional<Fact<Watts>> power;           ///< published power of the whole machine at load
  std::optional<Fact<double>> cost;           ///< price of the whole machine [USD]
  std::optional<ListedPeakConfig> fp64_peak;  ///< absent: no list has its Rpeak
  static const config::Schema<InstallationConfig>& schema();
};

/// The kernels that take tokens to their experts (dispatch) and bring the results back (combine),
/// as DeepEP, TensorRT-LLM and CANN have them. Alone such a kernel takes
///
///   start + crossing + max(floor, largest of bytes / (line rate x efficiency) over the links)
///
/// `start`: launch, choosing where tokens go, telling the peers and waiting for them; `crossing`:
/// what comes to it where the ranks are on more than one node; `floor`: what the way of the first
/// tokens through the kernel and the fabric takes, during which that many bytes move for nothing.
struct ExpertExchangeConfig {
  Fact<Seconds> dispatch_start;
  Fact<Seconds> dispatch_floor;
  Fact<Seconds> combine_start;
  Fact<Seconds> combine_floor;
  Fact<Seconds> crossing;
  Fact<double> normal_efficiency;
  Fact<double> low_latency_efficiency;
  Fact<double> scale_out_efficiency;  ///< share of the line rate of the NICs
  Fact<int> units = {20, "DeepEP deep_ep/buffer.py: 20 SMs unless set"};  ///< SMs that they hold
  static const config::Schema<ExpertExchangeConfig>& schema();
};

/// A system as sold: a server or a supernode. Several copies are joined by the scale-out network.
struct SystemConfig {
  // Defined once: they are long, and many files copy one.
  SystemConfig();
  SystemConfig(const SystemConfig&);
  SystemConfig(SystemConfig&&) noexcept;
  SystemConfig& operator=(const SystemConfig&);
  SystemConfig& operator=(SystemConfig&&) noexcept;
  ~SystemConfig();
  std::string id;  ///< "dgx_h100": what configurations call it
  std::string name;
  AcceleratorConfig accelerator;
  Fact<int> accelerators;         ///< packages in the system
  int accelerators_per_node = 0;  ///< packages behind one host board; 0: see packages_per_node
  ScaleUpConfig scale_up;
  ScaleOutConfig scale_out;
  std::optional<ExpertExchangeConfig> expert_exchange;
  HostConfig host;
  std::optional<Fact<Watts>> all_in_power;
  std::optional<Fact<Watts>> nameplate_power;
  std::optional<Fact<Watts>> host_power;
  std::optional<InstallationConfig> installation;
  std::vector<std::string> remarks;  ///< `describe` prints them
  static const config::Schema<SystemConfig>& schema();

  int ranks() const { return accelerators.value * accelerator.dies; }
  /// Packages behind one host board: as written, else 8, or all of a smaller system.
  int packages_per_node() const;
  int ranks_per_node() const { return packages_per_node() * accelerator.dies; }
  /// Packages that share a NIC: `scale_out.packages_per_nic`, but no more than a node has.
  int packages_per_nic() const { return std::min(scale_out.packages_per_nic, packages_per_node()); }
};

namespace config {

template <>
struct EnumNames<NetworkReduction> {
  using enum NetworkReduction;
  static constexpr std::pair<NetworkReduction, const char*> values[] = {
      {kNone, "none"}, {kAvailable, "available"}, {kAutomatic, "automatic"}};
};

template <>
struct EnumNames<Routing> {
  using enum Routing;
  static constexpr std::pair<Routing, const char*> values[] = {
      {kAdaptive, "adaptive"}, {kEcmp, "ecmp"}, {kDeterministic, "deterministic"}};
};

}  // namespace config

}  // namespace orrery
