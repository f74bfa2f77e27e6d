// SPDX-License-Identifier: Apache-2.0
#include "workloads/models/families/family.h"

namespace orrery {
namespace {

/// ChatGLM3's configuration has names of its own: groups of queries, and one bias in the attention.
void build_chatglm(FieldReader& reader, LlmConfig& model) {
  model.hidden = reader.size({"hidden_size"}, llm_limits::kHidden);
  model.vocabulary = reader.size({"padded_vocab_size"}, llm_limits::kVocabulary);
  const std::int64_t layers = reader.size({"num_layers"}, llm_limits::kLayers);
  model.layers.assign(static_cast<std::size_t>(layers), LayerConfig{});
  AttentionConfig& a = model.attention;
  a.heads = reader.size({"num_attention_heads"}, llm_limits::kHeads);
  a.kv_heads = reader.flag("multi_query_attention", false)
                   ? reader.size({"multi_query_group_num"}, a.heads)
                   : a.heads;
  if (a.heads % a.kv_heads != 0)
    reader.invalid("multi_query_group_num", "must divide num_attention_heads");
  a.head_dim = reader.size({"kv_channels"}, llm_limits::kHeadDim);
  const bool all_biases = reader.flag("add_bias_linear", false);
  a.qkv_bias = all_biases || reader.flag("add_qkv_bias", false);
  a.output_bias = all_biases;
  model.mlp.intermediate = reader.size({"ffn_hidden_size"}, llm_limits::kIntermediate);
  model.mlp.bias = all_biases;
  model.norm_bias = !reader.flag("rmsnorm", true);
  model.tied_embeddings = reader.tied_embeddings(false);
}

/// GLM-4-0414: norms in front of and behind attention and MLP, biases on queries, keys and values.
void build_glm4(FieldReader& reader, LlmConfig& model) {
  build_llama(reader, model);
  model.attention.output_bias = false;
  model.norms_per_layer = 4;
}

const RegisterFamily kChatglm({"chatglm"}, build_chatglm);
const RegisterFamily kGlm4({"glm4", "glm4v_text"}, build_glm4);

}  // namespace
}  // namespace orrery
