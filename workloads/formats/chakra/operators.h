// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "workloads/formats/graph_builder.h"

namespace orrery {

struct ChakraNode;  // workloads/formats/chakra/nodes.h

/// What the nodes of a Chakra trace from PyTorch tell of their tensors: what kernels compute and
/// move, and who reads what they write.
class ChakraOperators {
 public:
  explicit ChakraOperators(GraphBuilder& graph) : graph_(graph) {}

  /// A node of the device.
  void add(NodeId id, const ChakraNode& node, const NodeWork& work);
  /// A node that communicates.
  void add_transfer(NodeId id, const ChakraNode& node);
  /// Gives kernels what they compute: of several kernels of one operator, which have all of its
  /// tensors each, that which its name calls so.
  void finish(const std::string& file, std::vector<std::string>& notes);

 private:
  /// A kernel with a rule, until all kernels of its operator are known.
  struct Ruled {
    NodeId node;
    std::uint32_t kernel;
    KernelClass kind;
    bool named;  ///< the name of the kernel tells that class
    std::int64_t operation;
  };

  NodeTensors tensors_of(NodeId id, const ChakraNode& node);

  GraphBuilder& graph_;
  std::vector<Ruled> ruled_;
  /// Kernels by their operator, as `rf_id` numbers it, where it does.
  std::vector<std::pair<std::int64_t, NodeId>> operations_;
  std::uint64_t told_ = 0, sized_ = 0, untold_ = 0;  ///< counts of kernels
};

}  // namespace orrery
