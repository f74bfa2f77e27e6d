// SPDX-License-Identifier: Apache-2.0
// Zamba (arXiv 2405.16712) in the names and defaults of transformers' ZambaConfig: Mamba-1 in every
// layer, in some behind the one block of attention and MLP that they share, without adapters. A
// hybrid layer is two layers here. Channels of Mamba are in heads, each of which selects its steps,
// B and C from its own: as many weights and products as where all select from all.
#include <string>
#include <vector>

#include "workloads/models/families/family.h"

namespace orrery {
namespace {

void read_channels(FieldReader& reader, LlmConfig& model) {
  read_hybrid_mamba1(reader, model);
  const std::int64_t heads = reader.size_or({"n_mamba_heads"}, llm_limits::kHeads, 2);
  reader.require_divides("n_mamba_heads", heads, model.mamba.inner(), "channels");
  model.mamba.norm = model.mamba.selection_norms = false;
}

void read_one_block(FieldReader& reader, LlmConfig& model) {
  model.shared_block.blocks = 1;
  AttentionConfig& a = model.attention;
  a.heads = reader.size_or({"num_attention_heads"}, llm_limits::kHeads, 16);
  a.kv_heads = reader.size_or({"num_key_value_heads"}, llm_limits::kHeads, a.heads);
  const std::int64_t joined =
      reader.size_or({"attention_hidden_size"}, llm_limits::kHidden, 2 * model.hidden);
  if (joined != 2 * model.hidden)
    reader.unsupported("attention that reads other than twice hidden_size");
  a.head_dim = reader.size_or({"attention_head_dim"}, llm_limits::kHeadDim, joined / a.heads);
  if (a.heads % a.kv_heads != 0)
    reader.invalid("num_attention_heads", "expected a multiple of num_key_value_heads");
  a.rotary_dim = 0;
}

/// Whether layers have the block in front: the third, and behind it those of a period.
std::vector<bool> hybrid_layers(FieldReader& reader, const LlmConfig& model) {
  constexpr std::int64_t kFirst = 2;
  const std::int64_t every = reader.size_or({"attn_layer_period"}, llm_limits::kLayers, 6);
  const std::int64_t offset = reader.count_or({"attn_layer_offset"}, llm_limits::kLayers, 4);
  std::vector<bool> hybrid;
  for (std::int64_t i = 0; i < model.layer_count(); ++i)
    hybrid.push_back(i == kFirst || (i > kFirst && (i - kFirst - 1) % every == offset));
  const std::vector<std::string> types = reader.texts_or_empty("layers_block_type");
  if (types.empty()) return hybrid;
  reader.require_entries("layers_block_type", types.size(), hybrid.size());
  for (std::size_t i = 0; i < types.size(); ++i) {
    hybrid[i] = types[i] == "hybrid";
    if (!hybrid[i] && types[i] != "mamba")
      reader.unsupported("layers of type '" + types[i] + "' are not modelled");
  }
  return hybrid;
}

void build_zamba(FieldReader& reader, LlmConfig& model) {
  read_sizes(reader, model);
  read_channels(reader, model);
  read_one_block(reader, model);
  model.mlp.intermediate =
      reader.size_or({"intermediate_size"}, llm_limits::kIntermediate, 4 * model.hidden);
  model.tied_embeddings = reader.tied_embeddings(true);
  const std::vector<bool> hybrid = hybrid_layers(reader, model);
  model.layers.clear();
  bool again = false;
  for (const bool has_block : hybrid) {
    if (has_block) {
      model.layers.push_back(
          {.shares_weights = again, .mixer = MixerKind::kSharedBlock, .feeds = false});
      again = true;
    }
    model.layers.push_back({.mixer = MixerKind::kMamba1, .feeds = false});
  }
}

const RegisterFamily kZamba({"zamba"}, build_zamba);

}  // namespace
}  // namespace orrery
