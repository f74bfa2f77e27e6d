// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <vector>

#include "workloads/layers/layer_graph.h"

namespace orrery {

/// Which operators of a pass run in the kernels of others, and which tensors take memory.
struct FoldedGraph {
  /// By node: the one whose kernels do its work; itself where it has its own.
  std::vector<std::size_t> root;
  /// By tensor: the one whose memory it is in. A tensor inside a folded kernel is in none of its
  /// own: it goes with the result of that kernel.
  std::vector<std::size_t> storage;
  /// By tensor: nodes that read it, in order.
  std::vector<std::vector<std::size_t>> readers;
  /// By tensor: the node that makes it; the number of nodes: none does.
  std::vector<std::size_t> maker;
};

/// Inference that fuses does epilogues (LayerOperator::is_epilogue) in the kernels of the product
/// before them: that of their latest input, if nobody else reads it and all other inputs are there
/// when it runs. Results of operators that work in place, and views, are where their first input
/// is.
FoldedGraph fold(const LayerGraph& graph, const PassContext& pass);

}  // namespace orrery
