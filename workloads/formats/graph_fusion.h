// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "sim/graph/imported_graph.h"

namespace orrery {

/// What fusion has done to a graph.
struct FusedKernels {
  std::uint64_t gone = 0;        ///< kernels that have become part of another
  std::uint64_t attentions = 0;  ///< attention kernels that scores, softmax and values have become
  Bytes saved;                   ///< bytes that are neither written nor read any more

  /// "12 kernels are part of the one behind them, 4 of them ..", for people.
  std::string text() const;
};

/// Lets kernels of a graph run with the ones behind them, by the rules of fusion.h:
///  - a product or convolution with the elementwise kernel, norm or quantisation behind it;
///  - elementwise kernels with the elementwise kernel behind them;
///  - a product of queries and keys, what scales and masks its scores, the softmax over them, what
///    drops or masks its probabilities and their product with values: as one attention kernel,
///    which computes all pairs, since no file tells the mask. FLOPs stay.
/// All have to be on one stream, each followed by the next one and nothing else, and the next one
/// reads at least what the one before it writes. They become one kernel where the last of them
/// stood; the others become markers, so that whatever waited for a node or was waited for still is.
/// Dependencies are taken for data, so that this is for files which say what nodes need (Chakra),
/// and for kernels whose bytes read and written are known apart; ImportedNode::kept says otherwise.
/// Recorded times add up: only the model makes a fused kernel shorter, and never longer than its
/// parts (ImportedGraph::parts).
FusedKernels fuse_kernels(ImportedGraph& graph);

}  // namespace orrery
