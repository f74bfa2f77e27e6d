// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <vector>

#include "workloads/layers/listed/layer_graph.h"

namespace orrery {

/// Which operators of a pass run in the kernels of others, and which tensors take memory.
struct FoldedGraph {
  /// Node whose kernels do the work of a node, by node; itself where it has its own.
  std::vector<std::size_t> root;
  /// Tensor whose memory a tensor is in, by tensor. What is inside a folded kernel goes with the
  /// result of that kernel.
  std::vector<std::size_t> storage;
  /// Nodes that read a tensor, in order, by tensor.
  std::vector<std::vector<std::size_t>> readers;
  /// Node that makes a tensor, by tensor; the number of nodes: none does.
  std::vector<std::size_t> maker;
};

/// Inference that fuses does epilogues (LayerOperator::is_epilogue) in the kernels of the product
/// before them: that of their latest input, if nobody else reads it and all other inputs are there
/// when it runs. Results of operators that work in place, and views, are where their first input
/// is.
FoldedGraph fold(const LayerGraph& graph, const PassContext& pass);

}  // namespace orrery
