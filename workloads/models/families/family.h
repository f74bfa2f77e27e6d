// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "sim/config/registry.h"
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
/// Routed experts per token, at most as many as there are experts.
std::int64_t read_top_k(FieldReader& reader, std::int64_t experts);
/// Experts of Qwen2-MoE and later: every `decoder_sparse_step`-th layer has them, unless
/// `mlp_only_layers` names it.
void read_qwen_moe(FieldReader& reader, LlmConfig& model);
/// @throws FieldError where groups of Mamba-2 do not divide its heads
void require_mamba_groups(const FieldReader& reader, const MambaConfig& mamba, const char* field);
/// Gives all layers experts of `intermediate_size` and no dense MLP.
void make_all_layers_moe(FieldReader& reader, LlmConfig& model, std::int64_t experts);

}  // namespace orrery
