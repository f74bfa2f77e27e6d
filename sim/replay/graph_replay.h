// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <stdexcept>
#include <string>
#include <vector>

#include "sim/graph/costs.h"
#include "sim/graph/imported_graph.h"
#include "sim/graph/transfer.h"
#include "sim/replay/graph_chain.h"
#include "sim/replay/replay.h"
#include "sim/units/time.h"

namespace orrery {

/// What the nodes of imported graphs take on the machine that they are replayed on.
struct GraphCosts {
  /// Time of each of ImportedGraph::works, by graph; empty for a graph: as its file has recorded.
  std::vector<std::vector<Picoseconds>> works;
  /// Price of one collective or message; null: transfers take what their files have recorded.
  std::function<TransferCost(const Transfer&)> transfer;
  /// Transfers take the recorded time where there is one, else their price.
  bool recorded_transfers = false;
  double transfer_scale = 1;          ///< times of transfers over those that cost or file say
  std::vector<BytesPerSecond> links;  ///< capacity by link, of what `transfer` loads, none of it 0
  /// The links from a time on.
  struct LinkState {
    Picoseconds time = 0;
    std::vector<BytesPerSecond> links;  ///< capacity by link; 0: it is down
    /// Price of what begins then, or goes on, with the part that is left.
    std::function<TransferCost(const Transfer&)> transfer;
  };
  std::vector<LinkState> states;  ///< states by time; before the first the links are as above
  /// Times of kernels of a rank over those of `works`; null: 1. A draw for each run of a node.
  std::function<double(int rank, NodeId node)> slowdown;
  std::function<std::string(std::uint32_t link)>
      link_name;  ///< name of a link in errors; null: its number
};

struct GraphReplayOptions {
  Timeline* timeline = nullptr;  ///< receives one span per node that takes time, if given
  /// Receives when each node begins, by rank and node, if given.
  std::vector<std::vector<Picoseconds>>* begins = nullptr;
  /// Is told each node of the chain that the run takes as long as, from the last back: each began
  /// as the one before it ended, so that their times add up to the end.
  GraphChain::Visit chain = {};
};

/// Kinds of transfers, for tables by kind.
inline constexpr std::size_t kTransferKinds = static_cast<std::size_t>(TransferKind::kCombine) + 1;

/// What transfers of one kind did on one rank.
struct TransferTime {
  std::uint64_t count = 0;
  Picoseconds time = 0;  ///< time from when the last rank has come to the end, overlapped or not
  Picoseconds recorded = 0;  ///< the part of it that files have recorded
  double bytes = 0;          ///< sum of Transfer::bytes
};

struct GraphReplayResult {
  Picoseconds end = 0;
  int last_rank = 0;                  ///< the rank that ends last (the first of those)
  std::vector<Picoseconds> rank_end;  ///< 0 for ranks without a graph
  std::uint64_t nodes = 0;            ///< nodes of all ranks
  std::uint64_t events = 0;
  // Of the rank that ends last:
  TimeBreakdown breakdown;               ///< adds up to `end`
  std::vector<Picoseconds> stream_busy;  ///< time of its kernels and host operators, by stream
  std::array<TransferTime, kTransferKinds> transfers{};
  // Of all ranks, as in ReplayResult:
  std::vector<double> link_bytes, link_payload, link_busy_s;
};

/// Graphs of ranks that do not belong together: collectives or messages that meet and differ, ranks
/// that are not there. what() names ranks and nodes.
class GraphMismatch : public std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// Replays the graphs of all ranks of a run on the SystemC kernel of this process.
///
/// A node starts when all that it waits for have ended and its stream is free; of those that are
/// ready on a serial stream the first of the file. The k-th collective that a rank begins in a
/// group meets the k-th of the other ranks there, a send the receive with its source, destination
/// and tag, in the order in which both are begun. They start when the last has come. Ranks without
/// a graph come when the last of the others does. Recorded times of transfers have waits in them:
/// the shortest of the ranks counts.
///
/// @throws GraphMismatch; DeadlockError where nodes are left that can never start; LinkDownError;
/// std::overflow_error (time beyond 2^63 ps)
GraphReplayResult replay(const ImportedRun& run, const GraphCosts& costs,
                         const GraphReplayOptions& options = {});

}  // namespace orrery
