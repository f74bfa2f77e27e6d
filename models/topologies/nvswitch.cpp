// SPDX-License-Identifier: Apache-2.0
// One tier of NVSwitch chips: every package has `links_per_switch[s]` links to chip s of its board.
//  - DGX-2: 2 boards of 8 GPUs and 6 chips, one link to each, 8 trunks between chip s of both
//    boards (NVIDIA NVSwitch at Hot Chips 30)
//  - DGX A100: 6 chips, 2 links of 25 GB/s to each (NVIDIA DGX A100 architecture white paper)
//  - DGX H100: 4 chips, 5, 4, 4 and 5 links of 25 GB/s (NVIDIA at Hot Chips 34)
//  - GB200 NVL72: 18 chips, one link of 50 GB/s to each (NVIDIA NVL72 reference architecture)
//
// A chip is a non-blocking crossbar, so only the links of the packages limit, and the trunks. A
// message uses all chips in proportion to the links: between two packages there are as many
// disjoint two-hop paths as links, all equally short.
//
// Several dies of a package share its links: each reaches them, and the other dies, through the
// interface between the dies, which stands as a crossbar on the package.
#include <fmt/core.h>

#include <algorithm>
#include <numeric>
#include <string>
#include <vector>

#include "models/topologies/fabric.h"
#include "sim/machine/system_config.h"

namespace orrery {
namespace {

using VertexId = Topology::VertexId;

struct NvSwitchTopology final : ScaleUpTopology {
  std::vector<int> links_per_switch;  // of an accelerator to each switch chip of its board
  int boards = 1;                     // of switch chips
  int trunks = 0;                     // links of a chip to that of another board

  static const config::Schema<NvSwitchTopology>& schema() {
    using C = NvSwitchTopology;
    using config::between;
    static const auto schema =
        config::Schema<C>("nvswitch", "one tier of NVSwitch chips")
            .required("links_per_switch", &C::links_per_switch,
                      "links of a package to each switch chip", between(0, 1e6))
            .optional("boards", &C::boards, "boards with switch chips of their own",
                      between(1, 1e3))
            .optional("trunks", &C::trunks, "links from a chip to the same one of each other board",
                      between(0, 1e6))
            .check(
                "several boards need trunks between them",
                [](const C& c) { return c.boards == 1 || c.trunks > 0; }, "boards");
    return schema;
  }

  config::Fault fault(const SystemConfig& system) const override {
    if (system.accelerators.value % boards != 0)
      return {"boards must divide accelerators", {"scale_up.boards", "accelerators"}};
    const bool positive = std::all_of(links_per_switch.begin(), links_per_switch.end(),
                                      [](int links) { return links > 0; });
    const PortConfig& port = system.accelerator.scale_up;
    const auto wired =
        std::accumulate(links_per_switch.begin(), links_per_switch.end(), std::int64_t{0});
    if (!port.present() || (positive && wired == port.links.value)) return {};
    return {"links_per_switch must be positive and add up to scale_up.links of the accelerator",
            {"scale_up.links_per_switch", "accelerator.scale_up.links", "scale_up.kind"}};
  }

  std::unique_ptr<Fabric> build(const SystemConfig& system, const RankLayout& layout,
                                Topology& topology) const override;
};

class NvSwitchFabric final : public Fabric {
 public:
  NvSwitchFabric(const NvSwitchTopology& keys, const SystemConfig& system, const RankLayout& layout,
                 Topology& topology)
      : layout_(layout),
        links_(keys.links_per_switch),
        boards_(keys.boards),
        trunks_(keys.trunks),
        link_(system.accelerator.scale_up.bandwidth.value /
              system.accelerator.scale_up.links.value),
        reduces_(system.scale_up.switch_reduction) {
    if (layout.dies > 1) add_dies(system.accelerator.die_to_die.value, topology);
    add_packages(topology);
    add_trunks(topology);
    first_switch_ = topology.vertices();
    for (int board = 0; board < layout.systems * boards_; ++board) {
      for (std::size_t chip = 0; chip < links_.size(); ++chip) {
        topology.add_switch(fmt::format("{}/nvswitch{}", board_name(board), chip));
      }
    }
  }

  void append_route(int source, int destination, Route& route) const override {
    if (layout_.dies > 1) route.push_back({die_up_[index(source)]});
    if (layout_.package(source) != layout_.package(destination)) {
      route.push_back({up_[index(layout_.package(source))]});
      if (board(source) != board(destination)) {
        route.push_back({trunk_[trunk(board(source), board(destination))]});
      }
      route.push_back({down_[index(layout_.package(destination))]});
    }
    if (layout_.dies > 1) route.push_back({die_down_[index(destination)]});
  }

  int hops(int source, int destination) const override {
    if (layout_.package(source) == layout_.package(destination)) return 0;
    return board(source) == board(destination) ? 2 : 3;
  }

  void add_exchange(std::span<const int> group, double bytes,
                    std::vector<double>& loads) const override {
    const auto n = static_cast<double>(group.size());
    const int system = group.empty() ? 0 : layout_.system(group.front());
    const int first_package = system * layout_.ranks_per_system / layout_.dies;
    std::vector<double> packages(index(layout_.ranks_per_system / layout_.dies));
    std::vector<double> boards(index(boards_));
    for (const int rank : group) {
      packages[index(layout_.package(rank) - first_package)] += 1;
      boards[index(board(rank) - system * boards_)] += 1;
      if (layout_.dies == 1) continue;
      loads[die_up_[index(rank)]] += bytes * (n - 1);
      loads[die_down_[index(rank)]] += bytes * (n - 1);
    }
    for (std::size_t p = 0; p < packages.size(); ++p) {
      const double crossing = bytes * packages[p] * (n - packages[p]);
      loads[up_[index(first_package) + p]] += crossing;
      loads[down_[index(first_package) + p]] += crossing;
    }
    for (int a = 0; a < boards_; ++a) {
      for (int b = 0; b < boards_; ++b) {
        if (a == b) continue;
        loads[trunk_[trunk(system * boards_ + a, system * boards_ + b)]] +=
            bytes * boards[index(a)] * boards[index(b)];
      }
    }
  }

  bool reduces(std::span<const int> group) const override {
    return reduces_ && std::all_of(group.begin(), group.end(),
                                   [&](int rank) { return board(rank) == board(group.front()); });
  }
  // One tier: each chip reduces the share of the bytes that its links carry.
  void append_reduction(std::span<const int> group, Route& route) const override {
    for (const int rank : group) {
      if (layout_.dies > 1) route.push_back({die_up_[index(rank)]});
      route.push_back({up_[index(layout_.package(rank))]});
    }
  }
  void append_multicast(std::span<const int> group, Route& route) const override {
    for (const int rank : group) {
      route.push_back({down_[index(layout_.package(rank))]});
      if (layout_.dies > 1) route.push_back({die_down_[index(rank)]});
    }
  }

  void draw(Topology& topology) const override {
    for (int rank = 0; rank < layout_.ranks(); ++rank) {
      const int package = layout_.package(rank);
      VertexId port = topology.rank_vertex(rank);
      if (layout_.dies > 1) {
        port = first_package_ + index(package);
        const BytesPerSecond capacity = topology.bundles()[die_up_[index(rank)]].capacity;
        topology.add_link(topology.rank_vertex(rank), port, capacity, die_up_[index(rank)]);
        topology.add_link(port, topology.rank_vertex(rank), capacity, die_down_[index(rank)]);
        if (rank % layout_.dies != 0) continue;
      }
      for (std::size_t chip = 0; chip < links_.size(); ++chip) {
        for (int link = 0; link < links_[chip]; ++link) {
          topology.add_link(port, switch_vertex(board(rank), chip), link_, up_[index(package)]);
          topology.add_link(switch_vertex(board(rank), chip), port, link_, down_[index(package)]);
        }
      }
    }
    for (int a = 0; a < layout_.systems * boards_; ++a) {
      for (int b = a - a % boards_; b < a - a % boards_ + boards_; ++b) {
        if (a != b) draw_trunks(a, b, topology);
      }
    }
  }

 private:
  int board(int rank) const { return rank / (layout_.ranks_per_system / boards_); }
  std::size_t trunk(int from, int to) const { return index(from * boards_ + to % boards_); }
  VertexId switch_vertex(int board, std::size_t chip) const {
    return first_switch_ + index(board) * links_.size() + chip;
  }

  std::string board_name(int board) const {
    const int system = board / boards_;
    return boards_ == 1 ? fmt::format("system{}", system)
                        : fmt::format("system{}/board{}", system, board % boards_);
  }
  std::string package_name(const Topology& topology, int package) const {
    const std::string name = topology.rank_name(package * layout_.dies);  // of its first die
    return name.substr(0, name.rfind('/'));
  }

  void add_dies(BytesPerSecond capacity, Topology& topology) {
    first_package_ = topology.vertices();
    for (int package = 0; package < layout_.ranks() / layout_.dies; ++package) {
      topology.add_switch(package_name(topology, package) + "/package");
    }
    const NameId inside = topology.name("package");
    for (int rank = 0; rank < layout_.ranks(); ++rank) {
      const NameId die = topology.rank_name_id(rank);
      const Bundle up{LinkKind::kOnPackage, capacity, 1, rank};
      const Bundle down{LinkKind::kOnPackage, capacity, 1, -1};
      die_up_.push_back(topology.add_bundle(die, inside, up));
      die_down_.push_back(topology.add_bundle(inside, die, down));
    }
  }

  void add_packages(Topology& topology) {
    const int count = std::accumulate(links_.begin(), links_.end(), 0);
    const BytesPerSecond capacity = link_ * static_cast<double>(count);
    const NameId switches = topology.name("nvswitches");
    for (int package = 0; package < layout_.ranks() / layout_.dies; ++package) {
      const NameId name = layout_.dies == 1 ? topology.rank_name_id(package)
                                            : topology.name(package_name(topology, package));
      const int source = layout_.dies == 1 ? package : -1;
      const Bundle up{LinkKind::kScaleUp, capacity, count, source};
      const Bundle down{LinkKind::kScaleUp, capacity, count, -1};
      up_.push_back(topology.add_bundle(name, switches, up));
      down_.push_back(topology.add_bundle(switches, name, down));
    }
  }

  void add_trunks(Topology& topology) {
    if (boards_ == 1) return;
    const int count = trunks_ * static_cast<int>(links_.size());
    trunk_.resize(index(layout_.systems * boards_ * boards_));
    for (int a = 0; a < layout_.systems * boards_; ++a) {
      for (int b = a - a % boards_; b < a - a % boards_ + boards_; ++b) {
        if (a == b) continue;
        trunk_[trunk(a, b)] = topology.add_bundle(
            board_name(a), "board" + std::to_string(b % boards_),
            {LinkKind::kScaleUp, link_ * static_cast<double>(count), count, -1});
      }
    }
  }

  void draw_trunks(int from, int to, Topology& topology) const {
    for (std::size_t chip = 0; chip < links_.size(); ++chip) {
      for (int link = 0; link < trunks_; ++link) {
        topology.add_link(switch_vertex(from, chip), switch_vertex(to, chip), link_,
                          trunk_[trunk(from, to)]);
      }
    }
  }

  RankLayout layout_;
  std::vector<int> links_;  // of a package, by chip of its board
  int boards_;
  int trunks_;
  BytesPerSecond link_;
  bool reduces_;
  VertexId first_switch_ = 0, first_package_ = 0;
  std::vector<BundleId> up_, down_;          // by package
  std::vector<BundleId> die_up_, die_down_;  // by rank; empty where a package is one rank
  std::vector<BundleId> trunk_;              // by board, then by the other's number in the system
};

std::unique_ptr<Fabric> NvSwitchTopology::build(const SystemConfig& system,
                                                const RankLayout& layout,
                                                Topology& topology) const {
  require_die_links(system);
  return std::make_unique<NvSwitchFabric>(*this, system, layout, topology);
}

const RegisterScaleUp<NvSwitchTopology> registered_nvswitch(
    "nvswitch", "one tier of NVSwitch chips, each accelerator linked to every chip of its board");

}  // namespace
}  // namespace orrery
