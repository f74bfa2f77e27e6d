// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "sim/graph/memory_profile.h"
#include "sim/graph/program.h"
#include "workloads/layers/listed/layer_graph.h"
#include "workloads/steps/figures/memory.h"
#include "workloads/steps/training/optimizer/optimizer_config.h"

namespace orrery {

/// What a step of a list of layers has besides its pass.
struct LayerStepConfig {
  int dp = 1;  ///< number of replicas
  OptimizerKind optimizer = OptimizerKind::kSgd;
  /// Gradients that are reduced together, beside the backward pass, once they are there (PyTorch's
  /// DistributedDataParallel, bucket_cap_mb).
  Bytes bucket{25.0 * 1024 * 1024};
};

/// One forward pass of inference; or a forward and a backward pass, the reduction of gradients over
/// replicas and the update of a training step. Replicas are one role.
Program layer_program(const LayerGraph& graph, const LayerStepConfig& config);

/// Kernels of a forward pass, in issue order.
std::vector<Kernel> forward_kernels(const LayerGraph& graph);

/// FLOPs of products of a step on all replicas: a backward pass has twice those of a forward pass.
Flops layer_flops(const LayerGraph& graph, const LayerStepConfig& config);

/// Tensors between operations over a pass: activations, which gradients read, and working memory. A
/// tensor is there from the operation that makes it to the last that reads it, or longer where the
/// caller of a layer holds it (as in PyTorch). In training, what gradients read stays until they
/// have run, and so do gradients of tensors until they are used.
MemoryProfile tensor_profile(const LayerGraph& graph);

/// What a rank needs. Weights of 16 bits have their fp32 masters with the optimizer.
MemoryUse layer_step_memory(const LayerGraph& graph, const LayerStepConfig& config);

}  // namespace orrery
