// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "workloads/layers/listed/layer_graph.h"
#include "workloads/steps/figures/memory.h"

namespace orrery {

/// Tensors of a pass at the moment when most of them are in memory.
struct TensorMemory {
  Bytes kept;     ///< tensors that the backward pass needs
  Bytes working;  ///< all others
  Bytes total() const { return kept + working; }
};

/// Operators run in their order. A tensor is there from the operator that makes it to the last that
/// reads it; the inputs of a layer of several operators stay until the layer has returned, because
/// its caller holds them (as in PyTorch). In training, what backward passes need stays until they
/// have run, and so do gradients of tensors until they are used.
TensorMemory tensor_memory(const LayerGraph& graph, const PassContext& pass);

}  // namespace orrery
