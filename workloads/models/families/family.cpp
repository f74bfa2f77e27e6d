// SPDX-License-Identifier: Apache-2.0
#include "workloads/models/families/family.h"

#include "workloads/base/limits.h"

namespace orrery {
void read_sizes(FieldReader& reader, LlmConfig& model) {
  model.hidden = reader.size({"hidden_size", "n_embd"}, llm_limits::kHidden);
  model.vocabulary = reader.size({"vocab_size"}, llm_limits::kVocabulary);
  const std::int64_t layers = reader.size({"num_hidden_layers", "n_layer"}, llm_limits::kLayers);
  model.layers.assign(static_cast<std::size_t>(layers), LayerConfig{});
}

void read_grouped_attention(FieldReader& reader, LlmConfig& model) {
  AttentionConfig& a = model.attention;
  a.heads = reader.size({"num_attention_heads", "n_head"}, llm_limits::kHeads);
  a.kv_heads = reader.size_or({"num_key_value_heads", "n_head_kv"}, llm_limits::kHeads, a.heads);
  if (a.heads % a.kv_heads != 0) {
    reader.invalid("num_key_value_heads", std::to_string(a.kv_heads) + " does not divide " +
                                              std::to_string(a.heads) + " attention heads");
  }
  if (!reader.has("head_dim") && model.hidden % a.heads != 0) {
    reader.invalid("num_attention_heads", std::to_string(a.heads) + " does not divide the width " +
                                              std::to_string(model.hidden));
  }
  a.head_dim = reader.size_or({"head_dim"}, llm_limits::kHeadDim, model.hidden / a.heads);
  if (a.head_dim > llm_limits::kHeadDim) {
    reader.invalid("num_attention_heads",
                   "heads are wider than " + std::to_string(llm_limits::kHeadDim));
  }
}

std::int64_t read_window(FieldReader& reader) {
  return reader.count_or({"sliding_window", "sliding_window_size"}, llm_limits::kTokens, 0);
}

void read_uniform_window(FieldReader& reader, LlmConfig& model) {
  const std::int64_t window = read_window(reader);
  for (LayerConfig& layer : model.layers) layer.window = window;
}

bool read_layer_types(FieldReader& reader, LlmConfig& model, std::int64_t window) {
  const std::vector<std::string> types = reader.texts_or_empty("layer_types");
  if (types.empty()) return false;
  if (types.size() != model.layers.size()) {
    reader.invalid("layer_types", "expected " + std::to_string(model.layers.size()) +
                                      " entries, got " + std::to_string(types.size()));
  }
  for (std::size_t i = 0; i < types.size(); ++i) {
    if (types[i] == "sliding_attention") {
      if (window == 0) reader.invalid("sliding_window", "missing, but layer_types needs it");
      model.layers[i].window = window;
    } else if (types[i] != "full_attention") {
      reader.unsupported("layers of type '" + types[i] + "' are not modelled");
    }
  }
  return true;
}

std::int64_t read_top_k(FieldReader& reader, std::int64_t experts) {
  return reader.size({"num_experts_per_tok", "experts_per_token"}, experts);
}

void require_mamba_groups(const FieldReader& reader, const MambaConfig& mamba, const char* field) {
  if (mamba.heads % mamba.groups != 0)
    reader.invalid(field, std::to_string(mamba.groups) + " does not divide " +
                              std::to_string(mamba.heads) + " heads of Mamba");
}

void make_all_layers_moe(FieldReader& reader, LlmConfig& model, std::int64_t experts) {
  model.moe.experts = experts;
  model.moe.experts_per_token = read_top_k(reader, experts);
  model.moe.intermediate = model.mlp.intermediate;
  model.mlp.intermediate = 0;
  for (LayerConfig& layer : model.layers) layer.moe = true;
}

}  // namespace orrery
