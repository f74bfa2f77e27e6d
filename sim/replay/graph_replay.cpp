// SPDX-License-Identifier: Apache-2.0
#include "sim/replay/graph_replay.h"

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
