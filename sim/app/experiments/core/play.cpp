// SPDX-License-Identifier: Apache-2.0
#include "sim/app/experiments/core/play.h"

#include <cstddef>
#include <string>
#include <utility>

#include "sim/app/experiments/core/simulate.h"
#include "sim/results/metric_table.h"

namespace orrery {

namespace {

/// A part of the time of the rank that ends last.
struct BreakdownPart {
  DeclaredMetric metric;
  Picoseconds TimeBreakdown::*time;

  BreakdownPart(const std::string& name, const char* meaning, Picoseconds TimeBreakdown::*of)
      : metric({"breakdown." + name + "_s", "s", meaning, "training, inference, layers, replay"}),
        time(of) {}
};

const BreakdownPart kBreakdown[] = {
    {"compute", "kernels, on the rank that ends last", &TimeBreakdown::compute},
    {"contention", "time that transfers beside kernels slow them down by",
     &TimeBreakdown::contention},
    {"exposed_communication", "waiting for transfers in flight",
     &TimeBreakdown::exposed_communication},
    {"bubble", "waiting for other ranks to start a transfer", &TimeBreakdown::bubble},
    {"optimizer", "kernels of the optimizer", &TimeBreakdown::optimizer},
    {"host", "launches of kernels, and waits for the host", &TimeBreakdown::host},
    {"idle", "time after the last operator", &TimeBreakdown::idle}};

struct NodeCounts {
  std::vector<ComponentUse> uses;
  std::vector<std::size_t> node_of_rank;
  std::vector<int> ranks;         ///< ranks of each node
  std::vector<Picoseconds> busy;  ///< ps of kernels on all ranks of each node
};

NodeCounts count_nodes(const Topology& topology) {
  NodeCounts nodes;
  for (int rank = 0; rank < topology.ranks(); ++rank) {
    const std::string name = topology.rank_name(rank);
    const std::string_view node = node_of(name);
    if (nodes.uses.empty() || nodes.uses.back().name != node) {
      nodes.uses.push_back({std::string(node)});
      nodes.ranks.push_back(0);
    }
    ++nodes.ranks.back();
    nodes.node_of_rank.push_back(nodes.uses.size() - 1);
  }
  nodes.busy.resize(nodes.uses.size());
  return nodes;
}

/// Counts on the links that start at a rank: what passes through a rank of another message's way
/// counts there too.
void count_sent(const Topology& topology, const ReplayResult& replay, NodeCounts& nodes) {
  const std::vector<Bundle>& bundles = topology.bundles();
  for (std::size_t bundle = 0; bundle < bundles.size(); ++bundle) {
    const int source = bundles[bundle].source;
    if (source < 0) continue;  // a switch's
    const std::size_t node = nodes.node_of_rank[static_cast<std::size_t>(source)];
    nodes.uses[node].sent_bytes += replay.link_payload[bundle];
  }
}

/// What every node did: share of the run in which its accelerators ran kernels, and bytes that left
/// them. Ranks that were folded into a role did what the role did.
std::vector<ComponentUse> component_use(const Topology& topology, const Program& program,
                                        const ReplayResult& replay) {
  NodeCounts nodes = count_nodes(topology);
  for (std::size_t role = 0; role < program.roles.size(); ++role) {
    const Picoseconds busy = replay.roles[role].busy();
    for (const int number : program.roles[role].ranks) {
      const auto rank = static_cast<std::size_t>(number);
      nodes.busy[nodes.node_of_rank[rank]] +=
          replay.rank_busy.empty() ? busy : replay.rank_busy[rank];
    }
  }
  count_sent(topology, replay, nodes);
  for (std::size_t i = 0; i < nodes.uses.size(); ++i) {
    nodes.uses[i].busy_share =
        static_cast<double>(nodes.busy[i]) / (static_cast<double>(replay.end) * nodes.ranks[i]);
  }
  return std::move(nodes.uses);
}

}  // namespace

Played play(const ReplayInputs& inputs, const ReplayFunction& replayer, ReplayStandIn* stand_in) {
  if (stand_in != nullptr) return {stand_in->replay(inputs, replayer), {}};
  Played played{replayer(inputs.slowdowns), {}};
  played.components = component_use(inputs.topology, inputs.program, played.outcome.replay);
  return played;
}

std::string_view node_of(std::string_view rank) {
  return rank.substr(0, rank.find('/', rank.find('/') + 1));
}

void add_breakdown(const TimeBreakdown& time, RunRecord& record) {
  for (const auto& [metric, part] : kBreakdown)
    add_metric(record, metric, to_seconds(time.*part).base());
}

}  // namespace orrery
