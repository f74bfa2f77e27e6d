// SPDX-License-Identifier: Apache-2.0
#include "workloads/models/families/family.h"

namespace orrery {
namespace {

/// GPT-2, and SantaCoder's GPT-BigCode with one head of keys and values.
void build_gpt2(FieldReader& reader, LlmConfig& model) {
  read_sizes(reader, model);
  read_grouped_attention(reader, model);
  make_classical(model);
  if (model.family == "gpt_bigcode" && reader.flag("multi_query", true))
    model.attention.kv_heads = 1;
  model.mlp.intermediate = reader.size_or({"n_inner"}, llm_limits::kIntermediate, 4 * model.hidden);
  model.positions = reader.size({"n_positions"}, llm_limits::kTokens);
  model.tied_embeddings = reader.tied_embeddings(true);
  if (reader.flag("add_cross_attention", false))
    reader.unsupported("cross attention is not modelled");
}

void build_gpt_neox(FieldReader& reader, LlmConfig& model) {
  build_llama(reader, model);
  make_classical(model);
  // Attention and MLP beside each other have norms of their own here.
  model.parallel_block = reader.flag("use_parallel_residual", true);
  const double rotated = reader.fraction_or({"rotary_pct", "partial_rotary_factor"}, 0.25);
  model.attention.rotary_dim =
      static_cast<std::int64_t>(rotated * static_cast<double>(model.attention.head_dim));
  model.attention.qkv_bias = model.attention.output_bias = reader.flag("attention_bias", true);
}

void build_starcoder2(FieldReader& reader, LlmConfig& model) {
  build_llama(reader, model);
  make_classical(model);
  model.mlp.bias = reader.flag("use_bias", true);
  model.attention.qkv_bias = model.attention.output_bias = model.mlp.bias;
  model.tied_embeddings = reader.tied_embeddings(true);
  read_uniform_window(reader, model);
}

/// StableLM: a Llama with LayerNorm.
void build_stablelm(FieldReader& reader, LlmConfig& model) {
  build_llama(reader, model);
  model.norm_bias = true;
  model.attention.qkv_bias = reader.flag("use_qkv_bias", false);
  model.attention.output_bias = false;
}

const RegisterFamily kGpt2({"gpt2", "gpt_bigcode"}, build_gpt2);
const RegisterFamily kGptNeox({"gpt_neox"}, build_gpt_neox);
const RegisterFamily kStarcoder2({"starcoder2"}, build_starcoder2);
const RegisterFamily kStablelm({"stablelm"}, build_stablelm);

}  // namespace
}  // namespace orrery
