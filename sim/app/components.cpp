// SPDX-License-Identifier: Apache-2.0
#include "sim/app/components.h"

#include <boost/range/iterator_range.hpp>
#include <string_view>

#include "sim/graph/topology_boost.h"
#include "sim/kernel/structure.h"

namespace orrery {
namespace {

/// Machines with more ranks have modules down to their host boards: a module costs a kilobyte and
/// microseconds.
constexpr int kMostRanksWithModules = 1024;

bool is_large(const Topology& topology) { return topology.ranks() > kMostRanksWithModules; }

/// "system0/node1" of "system0/node1/accelerator3/die0".
std::string_view node_of(std::string_view rank) {
  return rank.substr(0, rank.find('/', rank.find('/') + 1));
}

std::vector<std::string> names_of(const Topology& topology) {
  std::vector<std::string> names;
  if (is_large(topology)) {
    for (int rank = 0; rank < topology.ranks(); ++rank) {
      const std::string_view node = node_of(topology.rank_name(rank));
      if (names.empty() || names.back() != node) names.emplace_back(node);
    }
    return names;
  }
  for (const auto vertex : boost::make_iterator_range(vertices(topology.graph()))) {
    names.push_back(topology.graph()[vertex].name);
  }
  return names;
}

/// The module that counts for each rank.
std::vector<Component*> modules_of(const Topology& topology, const Structure& structure) {
  std::vector<Component*> modules;
  std::string_view last;
  for (int rank = 0; rank < topology.ranks(); ++rank) {
    const std::string& name = topology.rank_name(rank);
    const std::string_view module = is_large(topology) ? node_of(name) : std::string_view(name);
    modules.push_back(module == last ? modules.back() : &structure.at(std::string(module)));
    last = module;
  }
  return modules;
}

/// Counts on the links that start at a rank: what passes through a rank of another message's way
/// counts there too.
void count_sent(const Topology& topology, const ReplayResult& replay,
                const std::vector<Component*>& modules) {
  const std::vector<Bundle>& bundles = topology.bundles();
  for (std::size_t bundle = 0; bundle < bundles.size(); ++bundle) {
    const int source = bundles[bundle].source;
    if (source < 0) continue;  // a switch's
    modules[static_cast<std::size_t>(source)]->sent += replay.link_payload[bundle];
  }
}

}  // namespace

void elaborate(const Topology& topology) { Structure::elaborate(names_of(topology)); }

std::vector<ComponentUse> component_use(const Topology& topology, const Program& program,
                                        const ReplayResult& replay) {
  const Structure& structure = Structure::elaborate(names_of(topology));
  const std::vector<Component*> modules = modules_of(topology, structure);
  for (std::size_t role = 0; role < program.roles.size(); ++role) {
    const TimeBreakdown& time = replay.roles[role].breakdown;
    for (const int rank : program.roles[role].ranks) {
      modules[static_cast<std::size_t>(rank)]->busy +=
          time.compute + time.contention + time.optimizer + time.host;
    }
  }
  count_sent(topology, replay, modules);
  std::vector<ComponentUse> uses;
  std::vector<int> ranks;  // of each node
  for (int rank = 0; rank < topology.ranks(); ++rank) {
    const std::string_view node = node_of(topology.rank_name(rank));
    if (uses.empty() || uses.back().name != node) {
      uses.push_back({std::string(node)});
      ranks.push_back(0);
    }
    ++ranks.back();
  }
  for (std::size_t i = 0; i < uses.size(); ++i) {
    const Component& node = structure.at(uses[i].name);
    uses[i].busy_share =
        static_cast<double>(node.total_busy()) / (static_cast<double>(replay.end) * ranks[i]);
    uses[i].sent_bytes = node.total_sent();
  }
  return uses;
}

}  // namespace orrery
