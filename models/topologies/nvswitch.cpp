// SPDX-License-Identifier: Apache-2.0
// One tier of NVSwitch chips: every GPU has `links_per_switch[s]` links to chip s.
//  - DGX A100: 6 chips, 2 links of 25 GB/s to each (NVIDIA DGX A100 architecture white paper)
//  - DGX H100: 4 chips, 5, 4, 4 and 5 links of 25 GB/s (NVIDIA at Hot Chips 34)
//  - GB200 NVL72: 18 chips, one link of 50 GB/s to each (NVIDIA NVL72 reference architecture)
//
// A chip is a non-blocking crossbar, so only the links of the GPUs limit. A message uses all chips
// in proportion to the links: between two GPUs there are as many disjoint two-hop paths as links,
// all equally short.
#include <algorithm>
#include <numeric>
#include <string>
#include <vector>

#include "models/topologies/fabric.h"
#include "sim/config/diagnostics.h"
#include "sim/machine/system_config.h"

namespace orrery {
namespace {

class NvSwitchFabric final : public Fabric {
 public:
  NvSwitchFabric(const SystemConfig& system, const RankLayout& layout, Topology& topology)
      : layout_(layout), reduces_(system.scale_up.switch_reduction) {
    for (int rank = 0; rank < layout.ranks(); ++rank) {
      up_.push_back(
          topology.add_bundle(topology.rank_name(rank) + "->nvswitches", LinkKind::kScaleUp));
      down_.push_back(
          topology.add_bundle("nvswitches->" + topology.rank_name(rank), LinkKind::kScaleUp));
    }
    for (int s = 0; s < layout.systems; ++s) add_system(s, system, layout, topology);
  }

  void append_route(int source, int destination, Route& route) const override {
    route.push_back({up_[static_cast<std::size_t>(source)]});
    route.push_back({down_[static_cast<std::size_t>(destination)]});
  }

  bool reduces(std::span<const int> group) const override {
    return reduces_ && std::all_of(group.begin(), group.end(), [&](int rank) {
             return layout_.system(rank) == layout_.system(group.front());
           });
  }
  // One tier: each chip reduces the share of the bytes that its links carry.
  void append_reduction(std::span<const int> group, Route& route) const override {
    for (const int rank : group) route.push_back({up_[static_cast<std::size_t>(rank)]});
  }
  void append_multicast(std::span<const int> group, Route& route) const override {
    for (const int rank : group) route.push_back({down_[static_cast<std::size_t>(rank)]});
  }

 private:
  void add_system(int index, const SystemConfig& system, const RankLayout& layout,
                  Topology& topology) {
    const std::vector<int>& links = system.scale_up.links_per_switch;
    const PortConfig& port = system.accelerator.scale_up;
    const BytesPerSecond capacity = port.bandwidth.value / port.links.value;
    const int first = index * layout.ranks_per_system;
    for (std::size_t chip = 0; chip < links.size(); ++chip) {
      const auto vertex = topology.add_switch("system" + std::to_string(index) + "/nvswitch" +
                                              std::to_string(chip));
      for (int rank = first; rank < first + layout.ranks_per_system; ++rank) {
        for (int link = 0; link < links[chip]; ++link) {
          const auto gpu = topology.rank_vertex(rank);
          topology.add_link(gpu, vertex, capacity, up_[static_cast<std::size_t>(rank)]);
          topology.add_link(vertex, gpu, capacity, down_[static_cast<std::size_t>(rank)]);
        }
      }
    }
  }

  RankLayout layout_;
  bool reduces_;
  std::vector<BundleId> up_, down_;  // by rank
};

std::unique_ptr<Fabric> build(const SystemConfig& system, const RankLayout& layout,
                              Topology& topology) {
  const std::vector<int>& links = system.scale_up.links_per_switch;
  const int wired = std::accumulate(links.begin(), links.end(), 0);
  const int ports = system.accelerator.scale_up.links.value;
  if (wired < 1 || wired != ports) {
    throw config::ConfigError(system.name + ": links_per_switch adds up to " +
                              std::to_string(wired) + ", but the accelerator has " +
                              std::to_string(ports) + " scale-up links");
  }
  if (layout.dies != 1) {
    throw config::ConfigError(system.name +
                              ": topology nvswitch connects packages; dies must be 1");
  }
  return std::make_unique<NvSwitchFabric>(system, layout, topology);
}

const ScaleUpRegistry::Register registered(
    "nvswitch", "one tier of NVSwitch chips, each accelerator linked to every chip", build);

}  // namespace
}  // namespace orrery
