// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "sim/config/node.h"
#include "workloads/models/config/model_config.h"
#include "workloads/plan/parallel_config.h"

namespace orrery {

/// Ranks that share the matrices of an expert where nobody has said it.
enum class ExpertSharing {
  kStage,  ///< engines: all ranks of a stage (vLLM's FusedMoEParallelConfig, SGLang's moe_tp_size,
           ///< TensorRT-LLM's moe_tp)
  kTensor  ///< Megatron-Core: tensor parallel ranks (expert_tensor_parallel_size)
};

/// Whether a model can be built and has experts.
bool has_experts(const ModelConfig& model);

/// Sets `parallel.etp` where neither it nor expert parallelism is written and the model has
/// experts; ranks beyond a given `ep` hold copies.
/// @param node the mapping that `parallel` is in
void take_expert_ranks(const ModelConfig& model, ExpertSharing sharing, ParallelConfig& parallel,
                       config::Node& node);

}  // namespace orrery
