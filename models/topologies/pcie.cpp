// SPDX-License-Identifier: Apache-2.0
// A box of PCIe cards: cards below switches, switches below the root complexes of processors, a
// link between the processors, and NVLink bridges between neighbours. Peers of NCCL's levels PIX,
// PXB, PHB and SYS as far as `peers` says write to each other directly (NCCL src/graph/paths.cc,
// ncclTopoCheckP2p); what is farther is written to memory of the receiver's processor and read from
// there (src/transport/shm.cc).
#include <fmt/core.h>

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "models/topologies/pcie_config.h"
#include "sim/config/diagnostics.h"
#include "sim/machine/system_config.h"

namespace orrery {
namespace {

using VertexId = Topology::VertexId;

/// Where the packages of one system are.
struct PciePlaces {
  int packages = 1;
  int sockets = 1;
  int per_switch = 0;  // 0: there are no switches
  int bridge = 0;      // packages that a bridge joins; 0: none

  int per_socket() const { return packages / sockets; }
  int switches_per_socket() const {
    return per_switch > 0 ? (per_socket() + per_switch - 1) / per_switch : 0;
  }
  int socket(int package) const { return package / per_socket(); }
  int switch_of(int package) const {
    return socket(package) * switches_per_socket() + package % per_socket() / per_switch;
  }

  PcieLevel level(int a, int b, bool switches_joined) const {
    if (bridge > 0 && a / bridge == b / bridge) return PcieLevel::kBridge;
    if (per_switch > 0 && switch_of(a) == switch_of(b)) return PcieLevel::kPix;
    if (socket(a) != socket(b)) return PcieLevel::kSys;
    return switches_joined ? PcieLevel::kPxb : PcieLevel::kPhb;
  }
};

/// Links both ways: up towards the processor, or from the first of two ends to the second.
struct LinkPair {
  BundleId up = 0, down = 0;
};

class PcieFabric final : public Fabric {
 public:
  PcieFabric(PcieConfig pcie, const SystemConfig& system, const RankLayout& layout,
             const PciePlaces& places, Topology& topology)
      : layout_(layout), config_(std::move(pcie)), places_(places) {
    const double reached = system.scale_up.efficiency.value;
    card_ = rate(config_.lanes);
    constexpr double kWritten = 1e-3;  // rounding of the same slot, as accelerators write it
    const PortConfig& port = system.accelerator.scale_up;
    if (port.kind.substr(0, 4) == "PCIe" && port.bandwidth.value < card_ * (1 - kWritten))
      card_ = port.bandwidth.value;
    bridge_ =
        system.accelerator.scale_up.bandwidth.value * (config_.bridge_efficiency.value / reached);
    socket_link_ = config_.socket_link.value / reached;
    // A message is written and read: the memory carries each byte twice.
    memory_ = system.host.memory_bandwidth.value / (2.0 * places.sockets * reached);
    bridge_links_ = system.accelerator.scale_up.links.value;
    for (int s = 0; s < layout.systems; ++s) add_system(s, topology);
  }

  void append_route(int source, int destination, Route& route) const override {
    const int system = layout_.system(source);
    const int from = source % places_.packages, to = destination % places_.packages;
    const PcieLevel level = places_.level(from, to, config_.switch_lanes > 0);
    if (level == PcieLevel::kBridge && config_.peers >= PcieLevel::kBridge) {
      route.push_back({bridge_bundle(source, destination)});
      return;
    }
    const bool direct = level <= config_.peers;
    route.push_back({cards_[index(source)].up});
    const bool inside = direct && level <= PcieLevel::kPxb && !config_.acs;
    if (inside && level == PcieLevel::kPxb)
      route.push_back({trunk_bundle(system, places_.switch_of(from), places_.switch_of(to))});
    if (!inside) append_root_route(system, from, to, direct, route);
    route.push_back({cards_[index(destination)].down});
  }

  /// Both ways around where bridges alternate with slots: the way back leaves the slots that the
  /// way there does not use.
  RingOrders rings(std::span<const int> group) const override {
    if (places_.bridge == 0 || group.size() < 3) return {};
    const auto pair = [&](int rank) { return rank / places_.bridge; };
    const bool all = std::all_of(group.begin(), group.end(),
                                 [&](int rank) { return pair(rank) == pair(group.front()); });
    const auto members = static_cast<int>(group.size());
    RingOrders orders(2);
    for (int i = 0; i < members; ++i) {
      orders[0].push_back(i);
      orders[1].push_back(members - 1 - i);
    }
    return all ? RingOrders{} : orders;
  }

  void draw(Topology& topology) const override {
    for (const Drawn& drawn : drawn_) {
      const Bundle& bundle = topology.bundles()[drawn.bundle];
      for (int link = 0; link < bundle.links; ++link)
        topology.add_link(drawn.from, drawn.to, bundle.capacity / bundle.links, drawn.bundle);
    }
  }

 private:
  struct Drawn {
    VertexId from = 0, to = 0;
    BundleId bundle = 0;
  };
  /// An end of links; its rank, if it is one.
  struct End {
    VertexId vertex = 0;
    int rank = -1;
  };

  int switches() const { return places_.switches_per_socket() * places_.sockets; }
  BytesPerSecond rate(int lanes) const {
    return pcie_rate(config_.generation, lanes, config_.payload.value, config_.link_layer.value);
  }

  /// From the switch or slot of one package over root complexes to that of another one, and where
  /// peers do not reach each other through the memory of the receiver's processor.
  void append_root_route(int system, int from, int to, bool direct, Route& route) const {
    const int source = places_.socket(from), destination = places_.socket(to);
    if (places_.per_switch > 0)
      route.push_back({uplinks_[index(system * switches() + places_.switch_of(from))].up});
    if (source != destination) route.push_back({socket_bundle(system, source, destination)});
    if (!direct) route.push_back({memories_[index(system * places_.sockets + destination)]});
    if (places_.per_switch > 0)
      route.push_back({uplinks_[index(system * switches() + places_.switch_of(to))].down});
  }

  BundleId bridge_bundle(int source, int destination) const {
    return bridges_[index(source * places_.bridge + destination % places_.bridge)];
  }
  BundleId trunk_bundle(int system, int from, int to) const {
    return trunks_[index((system * switches() + from) * switches() + to)];
  }
  BundleId socket_bundle(int system, int from, int to) const {
    return sockets_[index((system * places_.sockets + from) * places_.sockets + to)];
  }

  BundleId join(const End& from, const End& to, const Bundle& bundle, Topology& topology) {
    const BundleId id = topology.add_bundle(topology.vertex_name(from.vertex),
                                            topology.vertex_name(to.vertex), bundle);
    drawn_.push_back({from.vertex, to.vertex, id});
    return id;
  }
  /// A slot of PCIe, both ways. Energies are those of messages: the routes of the cards have them.
  LinkPair join_slot(const End& below, const End& above, BytesPerSecond slot, Topology& topology) {
    const int half_routes = below.rank >= 0 ? 1 : 0;
    const Bundle up{LinkKind::kScaleUp, slot, 1, below.rank, half_routes};
    const Bundle down{LinkKind::kScaleUp, slot, 1, -1, half_routes};
    return {join(below, above, up, topology), join(above, below, down, topology)};
  }

  void add_system(int system, Topology& topology) {
    const std::string name = fmt::format("system{}/", system);
    std::vector<End> roots, chips;
    for (int s = 0; s < places_.sockets; ++s)
      roots.push_back({topology.add_switch(fmt::format("{}processor{}", name, s)), -1});
    for (int s = 0; s < switches(); ++s)
      chips.push_back({topology.add_switch(fmt::format("{}pcie{}", name, s)), -1});
    add_cards(system, roots, chips, topology);
    add_chips(roots, chips, topology);
    add_roots(name, roots, topology);
    add_bridges(system, topology);
  }

  void add_cards(int system, const std::vector<End>& roots, const std::vector<End>& chips,
                 Topology& topology) {
    for (int package = 0; package < places_.packages; ++package) {
      const End& above = chips.empty() ? roots[index(places_.socket(package))]
                                       : chips[index(places_.switch_of(package))];
      const int rank = system * places_.packages + package;
      cards_.push_back(join_slot({topology.rank_vertex(rank), rank}, above, card_, topology));
    }
  }

  void add_chips(const std::vector<End>& roots, const std::vector<End>& chips, Topology& topology) {
    const int uplink = config_.uplink_lanes > 0 ? config_.uplink_lanes : config_.lanes;
    for (std::size_t s = 0; s < chips.size(); ++s) {
      const std::size_t socket = s / index(places_.switches_per_socket());
      uplinks_.push_back(join_slot(chips[s], roots[socket], rate(uplink), topology));
    }
    if (config_.switch_lanes == 0) return;
    const Bundle trunk{LinkKind::kScaleUp, rate(config_.switch_lanes), 1, -1, 0};
    for (std::size_t a = 0; a < chips.size(); ++a) {
      for (std::size_t b = 0; b < chips.size(); ++b) {
        const std::size_t each = index(places_.switches_per_socket());
        const bool joined = a != b && a / each == b / each;
        trunks_.push_back(joined ? join(chips[a], chips[b], trunk, topology) : BundleId{0});
      }
    }
  }

  void add_roots(const std::string& name, const std::vector<End>& roots, Topology& topology) {
    const Bundle link{LinkKind::kScaleUp, socket_link_, 1, -1, 0};
    for (std::size_t a = 0; a < roots.size(); ++a) {
      for (std::size_t b = 0; b < roots.size(); ++b)
        sockets_.push_back(a == b ? BundleId{0} : join(roots[a], roots[b], link, topology));
    }
    if (memory_.base() <= 0) return;
    for (std::size_t s = 0; s < roots.size(); ++s) {
      const End memory{topology.add_switch(fmt::format("{}memory{}", name, s)), -1};
      memories_.push_back(
          join(roots[s], memory, {LinkKind::kScaleUp, memory_, 1, -1, 0}, topology));
    }
  }

  void add_bridges(int system, Topology& topology) {
    const int links = std::max(1, bridge_links_ / std::max(1, places_.bridge - 1));
    for (int a = 0; places_.bridge > 0 && a < places_.packages; ++a) {
      for (int other = 0; other < places_.bridge; ++other) {
        const int b = a / places_.bridge * places_.bridge + other;
        const int from = system * places_.packages + a, to = system * places_.packages + b;
        const Bundle bridge{LinkKind::kScaleUp, bridge_ / (places_.bridge - 1.0), links, from, 2};
        const bool joined = a != b && b < places_.packages;  // the last group may be smaller
        bridges_.push_back(!joined ? BundleId{0}
                                   : join({topology.rank_vertex(from), from},
                                          {topology.rank_vertex(to), to}, bridge, topology));
      }
    }
  }

  RankLayout layout_;
  PcieConfig config_;
  PciePlaces places_;
  BytesPerSecond card_;  ///< the slot of a card, no faster than its port
  BytesPerSecond bridge_, socket_link_, memory_;
  int bridge_links_;
  std::vector<LinkPair> cards_, uplinks_;  // by rank; by switch of all systems
  std::vector<BundleId> trunks_;           // by switch of all systems, then the other of its system
  std::vector<BundleId> sockets_;   // by processor of all systems, then the other of its system
  std::vector<BundleId> memories_;  // by processor of all systems
  std::vector<BundleId> bridges_;   // by rank, then its place on the other end
  std::vector<Drawn> drawn_;
};

/// @throws config::KeyError where counts do not divide each other
PciePlaces places_of(const SystemConfig& system, const PcieConfig& config) {
  const PciePlaces places{system.accelerators.value, config.sockets, config.packages_per_switch,
                          config.bridge};
  if (places.packages % places.sockets != 0)
    throw config::KeyError({"system.scale_up.pcie.sockets", "system.accelerators"},
                           fmt::format("sockets must divide accelerators ({})", places.packages));
  if (places.bridge == 1)
    throw config::KeyError({"system.scale_up.pcie.bridge", "system.accelerators"},
                           "a bridge joins 2 or more accelerators");
  return places;
}

/// Whether some message passes the memory of processors.
bool passes_memory(const PciePlaces& places, const PcieConfig& config) {
  for (int b = 1; b < places.packages; ++b)
    if (places.level(0, b, config.switch_lanes > 0) > config.peers) return true;
  return false;
}

const RegisterScaleUp<PcieTopology> registered_pcie(
    "pcie", "cards behind PCIe switches, root complexes and processors, with NVLink bridges");

}  // namespace

const config::Schema<PcieTopology>& PcieTopology::schema() {
  static const auto schema =
      config::Schema<PcieTopology>("pcie", "cards in slots")
          .required("pcie", &PcieTopology::pcie, "switches and processors between packages");
  return schema;
}

std::unique_ptr<Fabric> PcieTopology::build(const SystemConfig& system, const RankLayout& layout,
                                            Topology& topology) const {
  require_one_die("pcie", layout);
  const PciePlaces places = places_of(system, pcie);
  if (passes_memory(places, pcie) && system.host.memory_bandwidth.value.base() <= 0) {
    throw config::KeyError({"system.host.memory_bandwidth", "system.scale_up.pcie.peers"},
                           "messages that pass the memory of the host need its bandwidth");
  }
  return std::make_unique<PcieFabric>(pcie, system, layout, places, topology);
}

}  // namespace orrery
