// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sim/graph/imported_graph.h"
#include "workloads/formats/node_tensors.h"

namespace orrery {

/// What fusion has done to a graph.
struct FusedKernels {
  std::uint64_t gone = 0;        ///< kernels that have become part of another
  std::uint64_t attentions = 0;  ///< attention kernels that scores, softmax and values have become
  Bytes saved;                   ///< bytes that are neither written nor read any more
  std::uint64_t unknown = 0;  ///< kernels of which the file does not tell who reads their results

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
/// Who reads what is told by tensors (PyTorch in Chakra; see TensorFlow), of which a part must not
/// be overwritten before the last kernel reads it. Else dependencies are taken for data, but for
/// nodes that say otherwise (ImportedNode::kept), as all of the PyTorch profiler do. Kernels need
/// bytes read and written apart.
/// Recorded times add up: only the model makes a fused kernel shorter, and never longer than its
/// parts (ImportedGraph::parts).
/// @param tensors those of nodes on the device, in the order of the file; empty: not told
FusedKernels fuse_kernels(ImportedGraph& graph, const std::vector<NodeTensors>& tensors = {});

}  // namespace orrery
