// SPDX-License-Identifier: Apache-2.0
#include "sim/replay/graph_replay.h"

#include <stdexcept>

#include "sim/replay/graph_replayer.h"
#include "sim/trace/timeline.h"

namespace orrery {
namespace {

void name_imported_tracks(const ImportedRun& run, Timeline& timeline) {
  for (std::uint32_t rank = 0; rank < run.graph_of_rank.size(); ++rank) {
    if (run.graph_of_rank[rank] == ImportedRun::kAbsent) continue;
    timeline.process(rank, "rank " + std::to_string(rank));
    const ImportedGraph& graph = run.graphs[run.graph_of_rank[rank]];
    for (std::uint32_t stream = 0; stream < graph.streams.size(); ++stream)
      if (graph.streams[stream].serial) timeline.thread(rank, stream, graph.streams[stream].name);
  }
}

}  // namespace

void GraphChain::place(std::size_t rank, std::size_t nodes) {
  if (nodes >= kMet) throw std::length_error("a graph that is replayed has at most 2 G nodes");
  if (causes_.size() <= rank) causes_.resize(rank + 1);
  causes_[rank].assign(nodes, kNone);
}

void GraphChain::met(const std::vector<int>& ranks, const std::vector<NodeId>& nodes,
                     Picoseconds time) {
  const auto last = static_cast<std::uint32_t>(ranks.back());
  const auto number = static_cast<std::uint32_t>(met_.size());
  met_.push_back({last, causes_[last][nodes.back()], time});
  for (std::size_t i = 0; i < ranks.size(); ++i)
    causes_[static_cast<std::size_t>(ranks[i])][nodes[i]] = kMet | number;
}

void GraphChain::walk(std::uint32_t rank, NodeId last,
                      const std::function<Picoseconds(std::uint32_t, NodeId)>& duration,
                      const Visit& visit) const {
  for (std::uint32_t node = last; node != kNone;) {
    const std::uint32_t cause = causes_[rank][node];
    if (cause == kNone || (cause & kMet) == 0) {
      visit(rank, node, duration(rank, node));
      node = cause;
      continue;
    }
    const Meeting& meeting = met_[cause & ~kMet];
    visit(rank, node, meeting.time);
    rank = meeting.rank;
    node = meeting.cause;
  }
}

GraphReplayResult replay(const ImportedRun& run, const GraphCosts& nodes, const Costs& costs,
                         const GraphReplayOptions& options) {
  if (options.timeline != nullptr) name_imported_tracks(run, *options.timeline);
  GraphReplayer replayer(run, nodes, costs, options);
  Simulation::instance().run(replayer);
  if (!replayer.finished()) {
    if (const std::string stall = replayer.stall_report(options.topology); !stall.empty())
      throw LinkDownError(stall);
    throw DeadlockError("nodes are left that cannot start:" + replayer.deadlock_report());
  }
  GraphReplayResult result = replayer.result();
  if (options.chain) replayer.walk_chain(options.chain);
  return result;
}

}  // namespace orrery
