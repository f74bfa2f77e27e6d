// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "sim/graph/kernel.h"
#include "sim/graph/node_names.h"
#include "sim/graph/transfer.h"
#include "sim/units/time.h"

namespace orrery {

using NodeId = std::uint32_t;  ///< place of a node in its graph, in the order of its file

/// What a node of a graph that comes from elsewhere does.
enum class NodeKind : std::uint8_t {
  kMarker,      ///< takes no time: joins what it waits for
  kHost,        ///< runs on the host of its rank
  kKernel,      ///< runs on its rank: a kernel, a copy, a fill
  kCollective,  ///< meets the other ranks of its group
  kSend,        ///< a message to another rank
  kReceive,     ///< a message from another rank
};
const char* to_string(NodeKind kind);

/// One node as it is replayed: 16 bytes. Those that wait for it are ImportedGraph::next from
/// `first_next` to the `first_next` of the node behind it.
struct ImportedNode {
  std::uint32_t work = 0;  ///< index of NodeWork, or of ImportedMessage where kind communicates
  std::uint32_t first_next = 0;  ///< index in ImportedGraph::next
  std::uint32_t waits = 0;       ///< nodes that it waits for
  std::uint16_t stream = 0;      ///< index of the stream that it occupies
  NodeKind kind = NodeKind::kMarker;
  /// Kernels: what it writes is needed by others than those that wait for it.
  bool kept = false;
};
static_assert(sizeof(ImportedNode) == 16);

/// What a marker, host operator or kernel takes.
struct NodeWork {
  static constexpr std::uint32_t kNoKernel = ~std::uint32_t{0};

  Picoseconds recorded = 0;  ///< time that its file says, where `timed`
  std::uint32_t kernel =
      kNoKernel;  ///< index of ImportedGraph::kernels: what it computes and moves
  KernelClass kind = KernelClass::kElementwise;  ///< class for scales and breakdowns
  /// The file, or a name that is known, tells the class; else kind means nothing.
  bool classified = false;
  bool timed = false;  ///< the file has recorded how long it took
  /// A collective of which the file has recorded no bytes or group, so that it meets nobody.
  bool communicates = false;
};
static_assert(sizeof(NodeWork) == 16);

/// What a node that communicates sends.
struct ImportedMessage {
  static constexpr std::uint32_t kWorld = ~std::uint32_t{0};

  TransferKind kind = TransferKind::kAllReduce;
  Bytes bytes;                   ///< bytes as Transfer::bytes counts them
  std::uint32_t group = kWorld;  ///< collectives: index of ImportedRun::groups; kWorld: all ranks
  int peer = -1;                 ///< sends and receives: the other rank
  std::int64_t tag = 0;          ///< sends and receives meet where both and the tag are the same
  int root = 0;                  ///< broadcast, reduce, gather, scatter: member of the group
  Picoseconds recorded = 0;      ///< time that its file says, waits for others included; 0: none
  bool operator==(const ImportedMessage&) const = default;
};

/// Nodes that run one after the other, or side by side.
struct ImportedStream {
  std::string name;    ///< "compute", "stream 7"
  bool serial = true;  ///< one node at a time, of those that are ready the first of the file
};

/// The graph of one rank, or of several that have the same: flat, without a graph library, since
/// traces have tens of millions of nodes.
struct ImportedGraph {
  std::vector<ImportedNode> nodes;  ///< and one behind the last, for the end of its `next`
  std::vector<NodeId> next;         ///< nodes that wait, by the node that they wait for
  std::vector<NodeWork> works;
  std::vector<ImportedMessage> messages;  ///< each once
  std::vector<Kernel> kernels;            ///< each once
  /// Kernels that one of `kernels` does the work of, by its number: it takes no longer than they do
  /// one after the other, since whoever has both runs what is faster.
  std::map<std::uint32_t, std::vector<std::uint32_t>> parts;
  std::vector<ImportedStream> streams;
  std::vector<std::uint64_t> ids;        ///< identifiers of the nodes in their file
  std::vector<NodeNames::Number> names;  ///< names of the nodes
  NodeNames pool;

  std::size_t size() const { return nodes.empty() ? 0 : nodes.size() - 1; }
  std::string_view name(NodeId node) const { return pool.at(names[node]); }
};

/// Graphs of all ranks of a run.
struct ImportedRun {
  static constexpr std::uint32_t kAbsent = ~std::uint32_t{0};

  std::vector<ImportedGraph> graphs;
  /// Ranks with identical files share one; kAbsent: nobody knows what the rank does.
  std::vector<std::uint32_t> graph_of_rank;
  std::vector<std::vector<int>> groups;  ///< communicators: ranks in the order of the group
  std::vector<std::string> notes;        ///< what was left out or mended, for people

  int ranks() const { return static_cast<int>(graph_of_rank.size()); }
};

}  // namespace orrery
