// SPDX-License-Identifier: Apache-2.0
#include "sim/app/components.h"

#include <boost/range/iterator_range.hpp>
#include <map>

#include "sim/kernel/structure.h"

namespace orrery {
namespace {

std::vector<std::string> names_of(const Topology& topology) {
  std::vector<std::string> names;
  for (const auto vertex : boost::make_iterator_range(vertices(topology.graph()))) {
    names.push_back(topology.graph()[vertex].name);
  }
  return names;
}

/// "system0/node1" of "system0/node1/accelerator3/die0".
std::string node_of(const std::string& rank) {
  return rank.substr(0, rank.find('/', rank.find('/') + 1));
}

void count_busy(const Topology& topology, const Program& program, const ReplayResult& replay,
                const Structure& structure) {
  for (std::size_t role = 0; role < program.roles.size(); ++role) {
    const TimeBreakdown& time = replay.roles[role].breakdown;
    for (const int rank : program.roles[role].ranks) {
      structure.at(topology.rank_name(rank)).busy += time.compute + time.optimizer + time.host;
    }
  }
}

/// Counts on the links that start at a rank: what passes through a rank of another message's way
/// counts there too.
void count_sent(const Topology& topology, const ReplayResult& replay, const Structure& structure) {
  const std::vector<Bundle>& bundles = topology.bundles();
  for (std::size_t bundle = 0; bundle < bundles.size(); ++bundle) {
    const int source = bundles[bundle].source;
    if (source < 0) continue;  // a switch's
    structure.at(topology.rank_name(source)).sent += replay.link_bytes[bundle];
  }
}

}  // namespace

void elaborate(const Topology& topology) { Structure::elaborate(names_of(topology)); }

std::vector<ComponentUse> component_use(const Topology& topology, const Program& program,
                                        const ReplayResult& replay) {
  const Structure& structure = Structure::elaborate(names_of(topology));
  count_busy(topology, program, replay, structure);
  count_sent(topology, replay, structure);
  std::map<std::string, int> ranks;
  std::vector<ComponentUse> uses;
  for (int rank = 0; rank < topology.ranks(); ++rank) {
    const std::string node = node_of(topology.rank_name(rank));
    if (ranks[node]++ == 0) uses.push_back({node});
  }
  for (ComponentUse& use : uses) {
    const Component& node = structure.at(use.name);
    use.busy_share = static_cast<double>(node.total_busy()) /
                     (static_cast<double>(replay.end) * ranks.at(use.name));
    use.sent_bytes = node.total_sent();
  }
  return uses;
}

}  // namespace orrery
