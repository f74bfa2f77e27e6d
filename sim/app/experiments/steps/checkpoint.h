// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <vector>

#include "sim/app/experiments/files/input_file.h"
#include "sim/app/experiments/steps/inference.h"
#include "sim/config/diagnostics.h"
#include "sim/config/node.h"
#include "workloads/models/config/model_config.h"
#include "workloads/plan/parallel_config.h"

namespace orrery {

/// Warns of what the Hugging Face file of a model says and is not modelled. A model that cannot be
/// built is reported where it is built.
/// @param node the configuration that has the model under `model`
void warn_of_checkpoint(const ModelConfig& model, const config::Node& node,
                        config::Diagnostics& diagnostics);

/// Warns of a model whose name says that it is quantised and of which nothing says how, where
/// nobody wrote a precision.
/// @param node the map with the key `precision`; @param experiment the one with `model`
void ask_precision(const ModelConfig& model, const config::Node& node,
                   const config::Node& experiment, config::Diagnostics& diagnostics);

/// Files that a model is built from: its configuration, and what says beside it how it is stored.
void add_model_files(const ModelConfig& model, std::vector<InputFile>& files);

/// Files of how often tokens pick experts, and of how often draft tokens are right.
void add_routing_file(const std::optional<ExpertRoutingConfig>& routing,
                      std::vector<InputFile>& files);
void add_draft_files(const std::optional<SpeculativeConfig>& speculative,
                     std::vector<InputFile>& files);

/// Where nobody wrote the precision of inference or of its KV cache, takes that of the checkpoint
/// of the model, which then stands in the configuration with the model's file as its origin. A KV
/// cache whose scales it does not bring stays.
/// A checkpoint in a format that the accelerator has no products of runs in bf16, which its weights
/// are widened to.
/// @param node the map with the keys `precision` and `kv_precision`
/// @return bits of weights that are widened, where products are of 16 bits; 0: none are
std::int64_t take_checkpoint_precisions(const ModelConfig& model,
                                        const AcceleratorConfig& accelerator, Precision& precision,
                                        CacheFormat& kv_precision, config::Node& node);

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
