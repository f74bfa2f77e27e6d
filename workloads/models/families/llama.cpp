// SPDX-License-Identifier: Apache-2.0
#include "workloads/models/families/family.h"

namespace orrery {

void build_llama(FieldReader& reader, LlmConfig& model) {
  read_sizes(reader, model);
  read_grouped_attention(reader, model);
  model.attention.qkv_bias = model.attention.output_bias = reader.flag("attention_bias", false);
  model.mlp.intermediate = reader.size({"intermediate_size"}, llm_limits::kIntermediate);
  model.mlp.bias = reader.flag("mlp_bias", false);
  model.tied_embeddings = reader.tied_embeddings(false);
}

namespace {

void build_mistral(FieldReader& reader, LlmConfig& model) {
  build_llama(reader, model);
  read_uniform_window(reader, model);
}

void build_phi3(FieldReader& reader, LlmConfig& model) {
  build_mistral(reader, model);
  if (reader.flag("lm_head_bias", false)) reader.unsupported("a bias in the head is not modelled");
}

/// InternLM 1 and 2: `bias` is that of the attention.
void build_internlm(FieldReader& reader, LlmConfig& model) {
  build_llama(reader, model);
  model.attention.qkv_bias = model.attention.output_bias = reader.flag("bias", false);
}

/// OLMo 2 (arXiv 2501.00656): norms of queries and keys span all heads, and the two norms of a
/// layer stand behind attention and MLP.
void build_olmo2(FieldReader& reader, LlmConfig& model) {
  build_llama(reader, model);
  model.attention.qk_norm = model.attention.qk_norm_all_heads = true;
}

const RegisterFamily kLlama({"llama", "baichuan"}, build_llama);
const RegisterFamily kMistral({"mistral"}, build_mistral);
const RegisterFamily kPhi3({"phi3", "phi3_v"}, build_phi3);
const RegisterFamily kInternlm({"internlm", "internlm2"}, build_internlm);
const RegisterFamily kOlmo2({"olmo2"}, build_olmo2);

}  // namespace
}  // namespace orrery
