// SPDX-License-Identifier: Apache-2.0
// Decoders whose layers have attention and MLP beside each other, from one norm where nothing else
// is said: GPT-J, Phi, Falcon and Cohere's models, in the names and defaults of transformers.
#include "workloads/models/families/family.h"

namespace orrery {
namespace {

void make_parallel(LlmConfig& model) {
  model.parallel_block = true;
  model.norms_per_layer = 1;
}

/// LayerNorm, a plain MLP with biases, and a bias for each entry of the vocabulary.
void make_gptj_like(FieldReader& reader, LlmConfig& model) {
  make_parallel(model);
  model.norm_bias = true;
  model.mlp.gated = false;
  model.mlp.bias = true;
  model.mlp.intermediate =
      reader.size_or({"n_inner", "intermediate_size"}, llm_limits::kIntermediate, 4 * model.hidden);
  model.head_bias = true;
  model.tied_embeddings = reader.tied_embeddings(false);
}

/// GPT-J (github.com/kingoflolz/mesh-transformer-jax): attention without biases.
void build_gptj(FieldReader& reader, LlmConfig& model) {
  read_sizes(reader, model);
  read_grouped_attention(reader, model);
  make_gptj_like(reader, model);
  AttentionConfig& a = model.attention;
  a.rotary_dim = reader.size_or({"rotary_dim"}, a.head_dim, a.head_dim);
}

/// Phi-1.5 and Phi-2 (arXiv 2309.05463): biases everywhere; "phi-msft" is their first form.
void build_phi(FieldReader& reader, LlmConfig& model) {
  read_sizes(reader, model);
  read_grouped_attention(reader, model);
  make_gptj_like(reader, model);
  AttentionConfig& a = model.attention;
  a.qkv_bias = a.output_bias = true;
  const double share = reader.fraction_or({"partial_rotary_factor"}, 0.5);
  const auto rotated = static_cast<std::int64_t>(share * static_cast<double>(a.head_dim));
  a.rotary_dim = reader.size_or({"rotary_dim"}, a.head_dim, rotated);
  if (reader.flag("qk_layernorm", false)) reader.unsupported("'qk_layernorm' is not modelled");
}

/// Falcon (arXiv 2311.16867): one head of keys and values, or with the new architecture several and
/// a norm for each half.
void build_falcon(FieldReader& reader, LlmConfig& model) {
  read_sizes(reader, model);
  read_grouped_attention(reader, model);
  AttentionConfig& a = model.attention;
  const bool several = reader.flag("new_decoder_architecture", false);
  const std::int64_t kv_heads = reader.size_or({"num_kv_heads", "n_head_kv"}, a.heads, a.heads);
  const bool one = reader.flag("multi_query", true);
  a.kv_heads = several ? kv_heads : one ? 1 : a.heads;
  if (a.heads % a.kv_heads != 0) reader.invalid("num_kv_heads", "must divide attention heads");
  if (!several && !reader.flag("parallel_attn", true))
    reader.unsupported("Falcon with attention and MLP behind each other");
  reader.flag("parallel_attn", true);
  if (reader.flag("alibi", false)) reader.unsupported("ALiBi positions are not modelled");
  make_parallel(model);
  if (several)
    model.norms_per_layer = static_cast<int>(reader.size_or({"num_ln_in_parallel_attn"}, 2, 2));
  model.norm_bias = true;
  a.qkv_bias = a.output_bias = model.mlp.bias = reader.flag("bias", false);
  model.mlp.gated = false;
  model.mlp.intermediate =
      reader.size_or({"ffn_hidden_size"}, llm_limits::kIntermediate, 4 * model.hidden);
  model.tied_embeddings = reader.tied_embeddings(true);
}

/// Command R (docs.cohere.com/docs/command-r): LayerNorm without a bias, a gated MLP, a tied table.
/// Norms of queries and keys have weights for every head.
void build_cohere(FieldReader& reader, LlmConfig& model) {
  build_llama(reader, model);
  make_parallel(model);
  model.tied_embeddings = reader.tied_embeddings(true);
  model.attention.qk_norm = model.attention.qk_norm_all_heads = reader.flag("use_qk_norm", false);
}

/// Command R7B and Command A: three layers with a window and rotary positions, then one that sees
/// all and has none.
void build_cohere2(FieldReader& reader, LlmConfig& model) {
  build_cohere(reader, model);
  read_window_pattern(reader, model, 4);
  AttentionConfig unrotated = model.attention;
  unrotated.rotary_dim = 0;
  for (LayerConfig& layer : model.layers)
    if (layer.window == 0) layer.variant = model.variant_of(unrotated);
}

const RegisterFamily kGptj({"gptj"}, build_gptj);
const RegisterFamily kPhi({"phi", "phi-msft"}, build_phi);
const RegisterFamily kFalcon({"falcon"}, build_falcon);
const RegisterFamily kCohere({"cohere"}, build_cohere);
const RegisterFamily kCohere2({"cohere2"}, build_cohere2);

}  // namespace
}  // namespace orrery
