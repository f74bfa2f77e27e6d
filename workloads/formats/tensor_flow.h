// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "sim/graph/imported_graph.h"
#include "workloads/formats/node_tensors.h"

namespace orrery {

/// Who reads what nodes write, by the memory of their tensors. What lies in one memory has lives:
/// each begins as a node overwrites it, and ends as the next one does. Nodes are taken in the order
/// of their identifiers, which is that in which a program has issued them.
class TensorFlow {
 public:
  TensorFlow(const ImportedGraph& graph, const std::vector<NodeTensors>& nodes);

  /// The node that alone reads the one thing which a node writes. Nothing where others may: parts
  /// of the memory are written apart, or a node that tells no tensors comes before it is written
  /// again.
  std::optional<NodeId> only_reader(NodeId writer) const;
  /// Whether what the nodes of a chain read, but for what they leave to each other, is still there
  /// when the last of them begins.
  bool is_there(const std::vector<NodeId>& chain) const;
  /// The chain has become its last node.
  void join(const std::vector<NodeId>& chain);

 private:
  static constexpr std::uint32_t kNever = ~std::uint32_t{0};
  struct Life {
    Bytes bytes;
    std::uint32_t end = kNever;  ///< position of who overwrites it
    bool shared = false;         ///< has parts that were written, or are overwritten, apart
    std::vector<NodeId> readers;
  };
  struct Uses {
    bool told = false;
    std::vector<std::uint32_t> reads, writes;  ///< numbers of lives
  };

  void write(std::uint32_t& current, NodeId node, Bytes bytes, bool shared);

  std::vector<Life> lives_;
  std::vector<Uses> uses_;               ///< uses by node
  std::vector<std::uint32_t> position_;  ///< positions by node
  std::vector<std::uint32_t> untold_;    ///< positions of nodes that tell no tensors
};

}  // namespace orrery
