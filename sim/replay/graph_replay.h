// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <stdexcept>
#include <vector>

#include "sim/graph/costs.h"
#include "sim/graph/imported_graph.h"
#include "sim/graph/imported_transfers.h"
#include "sim/graph/kernel.h"
#include "sim/graph/transfer.h"
#include "sim/replay/replay.h"
#include "sim/units/time.h"

namespace orrery {

/// Why each node of a replay began when it did: the node of its rank that ended just then, what it
/// waits for or what its stream was busy with; and of a transfer what the last rank came from. From
/// the last node back this is the chain that the whole run takes as long as.
class GraphChain {
 public:
  void place(std::size_t rank, std::size_t nodes);
  /// A node of a rank begins as an earlier one ends.
  void follows(std::uint32_t rank, NodeId node, NodeId earlier) { causes_[rank][node] = earlier; }
  /// A transfer has taken so long since the last rank came.
  /// @param ranks, nodes who takes part, the last at the end
  void met(const std::vector<int>& ranks, const std::vector<NodeId>& nodes, Picoseconds time);

  /// Tells a node of the chain, and what it takes of the time.
  using Visit = std::function<void(std::uint32_t rank, NodeId node, Picoseconds time)>;
  /// Goes back from a node.
  /// @param duration what a node takes that is no transfer
  void walk(std::uint32_t rank, NodeId last,
            const std::function<Picoseconds(std::uint32_t, NodeId)>& duration,
            const Visit& visit) const;

 private:
  static constexpr std::uint32_t kNone = ~std::uint32_t{0};
  static constexpr std::uint32_t kMet = std::uint32_t{1} << 31U;  ///< else it is no node

  /// A transfer: what the last rank came from.
  struct Meeting {
    std::uint32_t rank = 0;
    std::uint32_t cause = kNone;
    Picoseconds time = 0;
  };

  std::vector<std::vector<std::uint32_t>> causes_;  ///< nodes, kNone, or kMet and a place in met_
  std::vector<Meeting> met_;
};

/// What the nodes of imported graphs take, and what they do for the machine that they run on.
struct GraphCosts {
  /// Time of each of ImportedGraph::works, by graph; empty for a graph: as its file has recorded.
  std::vector<std::vector<Picoseconds>> works;
  /// The kernel of Costs that each work runs, by graph; NodeWork::kNoKernel: none. Empty for a
  /// graph: none of its works.
  std::vector<std::vector<KernelId>> kernels;
  /// Transfers in the order of Costs::transfers; null: they take what their files have recorded.
  const ImportedTransfers* transfers = nullptr;
  /// Transfers take the recorded time where there is one, else their price.
  bool recorded_transfers = false;
  double recorded_scale = 1;  ///< times of transfers over those that files have recorded
};

struct GraphReplayOptions : ReplayOptions {
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

/// The result of a replay whose roles are ranks, empty for those without a graph.
struct GraphReplayResult : ReplayResult {
  // Of the rank that ends last:
  std::vector<Picoseconds> stream_busy;  ///< time of its kernels and host operators, by stream
  std::array<TransferTime, kTransferKinds> transfers{};

  /// Parts of the time of the rank that ends last; they add up to `end`.
  const TimeBreakdown& breakdown() const {
    return roles[static_cast<std::size_t>(last_role)].breakdown;
  }
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
/// the shortest of the ranks counts. Kernels whose time is not fixed (KernelCost::fixed) are slowed
/// by transfers beside them as those of programs are.
///
/// @param costs transfers, links and their events, and which kernels have a fixed time
/// @param options images, path and links are for programs alone
/// @throws GraphMismatch; DeadlockError where nodes are left that can never start; LinkDownError;
/// std::overflow_error (time beyond 2^63 ps)
GraphReplayResult replay(const ImportedRun& run, const GraphCosts& nodes, const Costs& costs = {},
                         const GraphReplayOptions& options = {});

}  // namespace orrery
