// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "sim/graph/program.h"
#include "workloads/layers/listed/layer_graph.h"
#include "workloads/steps/figures/memory.h"
#include "workloads/steps/training/optimizer_config.h"

namespace orrery {

/// A step of a model that is a list of layers, on replicas.
struct LayerStepConfig {
  PassContext pass;
  int dp = 1;  ///< number of replicas
  OptimizerKind optimizer = OptimizerKind::kSgd;
  /// Gradients that are reduced together, beside the backward pass, once they are there (PyTorch's
  /// DistributedDataParallel, bucket_cap_mb).
  Bytes bucket{25.0 * 1024 * 1024};
};

/// One forward pass of inference; or a forward and a backward pass, the reduction of gradients over
/// replicas and the update of a training step. Replicas are one role.
Program layer_program(const LayerGraph& graph, const LayerStepConfig& config);

/// FLOPs of products of a step on all replicas: a backward pass has twice those of a forward pass.
Flops layer_flops(const LayerGraph& graph, const LayerStepConfig& config);

/// What a rank needs. Weights of 16 bits have their fp32 masters with the optimizer.
MemoryUse layer_step_memory(const LayerGraph& graph, const LayerStepConfig& config);

/// Kernels of a forward pass, those of folded operators in others.
std::vector<Kernel> forward_kernels(const LayerGraph& graph, const PassContext& pass);

}  // namespace orrery
