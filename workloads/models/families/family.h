// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "sim/config/registry.h"
#include "workloads/base/limits.h"
#include "workloads/models/fields/field_reader.h"
#include "workloads/models/llm_config.h"

namespace orrery {

/// Builds one family of models; `model` has its name and family, nothing else.
using FamilyBuilder = void (*)(FieldReader& reader, LlmConfig& model);

/// Builders by `model_type`. A family is one file with one such object at namespace scope:
/// `const RegisterFamily kMistral({"mistral"}, build_mistral);`.
using FamilyRegistry = Registry<FamilyBuilder>;
using RegisterFamily = FamilyRegistry::Register;

/// @throws UnsupportedModel with the reason where the `model_type` is known not to be modelled.
void refuse_unmodelled_family(const FieldReader& reader);

/// What a Llama is made of, in the fields and defaults of the transformers library; most families
/// start from it and change what differs.
void build_llama(FieldReader& reader, LlmConfig& model);

/// LayerNorm, biases in every matrix of a layer, and an MLP of two matrices.
void make_classical(LlmConfig& model);

// Parts of it.
void read_sizes(FieldReader& reader, LlmConfig& model);  ///< width, vocabulary, number of layers
void read_grouped_attention(FieldReader& reader, LlmConfig& model);  ///< after read_sizes
/// DeepSeek-V2 (arXiv 2405.04434), section 2.1. `q_lora_rank` is null where queries are projected
/// directly (V2-Lite).
void read_latent_attention(FieldReader& reader, LlmConfig& model);
/// Applies `sliding_window`, where given, to all layers.
void read_uniform_window(FieldReader& reader, LlmConfig& model);
/// Applies `sliding_window` to the layers that `layer_types` calls sliding; false where the
/// configuration has no `layer_types`.
bool read_layer_types(FieldReader& reader, LlmConfig& model, std::int64_t window);
std::int64_t read_window(FieldReader& reader);  ///< `sliding_window`; 0 where there is none
/// `layer_types`, or windows in every second layer from the first, or in all but each `every`-th,
/// unless `sliding_window_pattern` says another number.
void read_alternating_windows(FieldReader& reader, LlmConfig& model);
void read_window_pattern(FieldReader& reader, LlmConfig& model, std::int64_t every);
/// Routed experts per token, at most as many as there are experts.
std::int64_t read_top_k(FieldReader& reader, std::int64_t experts);
/// Routed and shared experts in DeepSeek's names.
void read_deepseek_experts(FieldReader& reader, MoeConfig& moe);
/// The first `first_k_dense_replace` layers are dense; of the others every `moe_layer_freq`-th has
/// experts.
void read_layers_behind_dense(FieldReader& reader, LlmConfig& model);
/// Experts of Qwen2-MoE and later: every `decoder_sparse_step`-th layer has them, unless
/// `mlp_only_layers` names it.
void read_qwen_moe(FieldReader& reader, LlmConfig& model);
/// Mamba-1 beside attention, in the names of Jamba: every channel is a head of one element.
void read_hybrid_mamba1(FieldReader& reader, LlmConfig& model);
void set_channels(LlmConfig& model, std::int64_t inner);
/// Columns of steps of Mamba-1 that "auto" stands for, which a file may say too: a sixteenth of the
/// width.
std::int64_t read_step_rank(FieldReader& reader, const LlmConfig& model, const char* field);
/// Gives all layers experts of `intermediate_size` and no dense MLP.
void make_all_layers_moe(FieldReader& reader, LlmConfig& model, std::int64_t experts);

}  // namespace orrery
