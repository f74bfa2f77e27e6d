// SPDX-License-Identifier: Apache-2.0
// Nemotron-H (arXiv 2504.03624) and Nemotron 3: every layer is one of Mamba-2, attention, MLP or
// experts, with one norm. Names and defaults of NVIDIA's configuration_nemotron_h.py.
#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "workloads/models/families/family.h"

namespace orrery {
namespace {

constexpr LayerConfig kMamba{.mixer = MixerKind::kMamba2, .feeds = false};
constexpr LayerConfig kAttentionLayer{.mixer = MixerKind::kAttention, .feeds = false};
constexpr LayerConfig kMlpLayer{.mixer = MixerKind::kNone};
constexpr LayerConfig kExpertsLayer{.moe = true, .mixer = MixerKind::kNone};

/// Letters of `hybrid_override_pattern`, and words of `layers_block_type`.
const std::map<std::string, LayerConfig>& kinds() {
  static const std::map<std::string, LayerConfig> all = {
      {"M", kMamba},        {"*", kAttentionLayer}, {"-", kMlpLayer},
      {"E", kExpertsLayer}, {"mamba", kMamba},      {"attention", kAttentionLayer},
      {"mlp", kMlpLayer},   {"moe", kExpertsLayer}};
  return all;
}

/// One of the two lists that say what each layer is; empty where neither is there.
std::vector<LayerConfig> read_layers(FieldReader& reader, const char* words, const char* letters) {
  std::vector<std::string> names = reader.texts_or_empty(words);
  const char* field = names.empty() ? letters : words;
  if (names.empty())
    for (const char letter : reader.text_or({letters}, "")) names.emplace_back(1, letter);
  std::vector<LayerConfig> layers;
  for (const std::string& name : names) {
    const auto kind = kinds().find(name);
    if (kind == kinds().end())
      reader.invalid(field,
                     fmt::format("'{}' is no kind of layer: expected mamba (M), attention (*), mlp "
                                 "(-) or moe (E)",
                                 name));
    layers.push_back(kind->second);
  }
  return layers;
}

void read_mamba(FieldReader& reader, LlmConfig& model) {
  MambaConfig& m = model.mamba;
  m.heads = reader.size({"mamba_num_heads"}, llm_limits::kHeads);
  m.head_dim = reader.size({"mamba_head_dim"}, llm_limits::kHeadDim);
  m.state = reader.size({"ssm_state_size"}, llm_limits::kHeadDim);
  m.groups = reader.size({"n_groups"}, llm_limits::kHeads);
  reader.require_divides("n_groups", m.groups, m.heads, "heads of Mamba");
  m.conv_kernel = reader.size_or({"conv_kernel"}, llm_limits::kHeadDim, 4);
  m.chunk = reader.size_or({"chunk_size"}, llm_limits::kTokens, 128);
  m.conv_bias = reader.flag("use_conv_bias", true);
  m.projection_bias = reader.flag("mamba_proj_bias", false) || reader.flag("use_bias", false);
  // Says what runs it, not what it is.
  reader.flag("use_mamba_kernels", true);
  const std::string cache = reader.text_or({"mamba_ssm_cache_dtype"}, "float32");
  if (cache != "float32") reader.unsupported("states of Mamba in " + cache + " are not modelled");
  const std::string function = reader.text_or({"mamba_hidden_act"}, "silu");
  if (function != "silu") reader.unsupported("Mamba with '" + function + "' is not modelled");
}

void read_latent_experts(FieldReader& reader, LlmConfig& model) {
  MoeConfig& moe = model.moe;
  read_deepseek_experts(reader, moe);
  moe.latent = reader.count_or({"moe_latent_size"}, llm_limits::kHidden, 0);
  const std::int64_t shared = reader.size_or({"moe_shared_expert_intermediate_size"},
                                             llm_limits::kIntermediate, moe.intermediate);
  moe.shared_intermediate = moe.shared_experts * shared;
  moe.router_bias = true;  // e_score_correction_bias
  // Says when they run, not what.
  reader.flag("moe_shared_expert_overlap", false);
}

/// A module of multi-token prediction: an attention layer and one of experts, as one.
void read_modules(FieldReader& reader, LlmConfig& model) {
  model.mtp_layers = reader.count_or({"num_nextn_predict_layers"}, llm_limits::kLayers, 0);
  const auto module = read_layers(reader, "mtp_layers_block_type", "mtp_hybrid_override_pattern");
  if (module.empty()) return;
  if (module != std::vector{kAttentionLayer, kExpertsLayer})
    reader.unsupported("modules of multi-token prediction other than attention and experts");
  model.module = LayerConfig{.moe = true};
}

void build_nemotron_h(FieldReader& reader, LlmConfig& model) {
  model.hidden = reader.size({"hidden_size"}, llm_limits::kHidden);
  model.vocabulary = reader.size({"vocab_size"}, llm_limits::kVocabulary);
  model.layers = read_layers(reader, "layers_block_type", "hybrid_override_pattern");
  if (model.layers.empty())
    reader.invalid("hybrid_override_pattern", "missing, and layers_block_type too");
  const std::int64_t layers =
      reader.size_or({"num_hidden_layers"}, llm_limits::kLayers, model.layer_count());
  if (layers != model.layer_count())
    reader.invalid("num_hidden_layers",
                   fmt::format("{} layers are listed, got {}", model.layer_count(), layers));
  read_grouped_attention(reader, model);
  // Nemotron-H calls the dimension by another name.
  model.attention.head_dim =
      reader.size_or({"head_dim", "attention_head_dim"}, llm_limits::kHeadDim, 128);
  model.attention.qkv_bias = model.attention.output_bias = reader.flag("attention_bias", false);
  model.mlp.intermediate = reader.size({"intermediate_size"}, llm_limits::kIntermediate);
  model.mlp.gated = false;
  model.mlp.bias = reader.flag("mlp_bias", false);
  const std::string function = reader.text_or({"mlp_hidden_act"}, "relu2");
  if (function != "relu2") reader.unsupported("an MLP with '" + function + "' is not modelled");
  if (model.has(MixerKind::kMamba2)) read_mamba(reader, model);
  if (reader.has("n_routed_experts")) read_latent_experts(reader, model);
  if (!model.has_moe() && std::ranges::any_of(model.layers, &LayerConfig::moe))
    reader.invalid("n_routed_experts", "missing, but layers of experts are listed");
  read_modules(reader, model);
  read_uniform_window(reader, model);
  model.tied_embeddings = reader.tied_embeddings(false);
}

const RegisterFamily kNemotronH({"nemotron_h"}, build_nemotron_h);

}  // namespace
}  // namespace orrery
