// SPDX-License-Identifier: Apache-2.0
// Zamba2 (arXiv 2411.15242) in the names and defaults of transformers' Zamba2Config: Mamba-2 in
// every layer; "hybrid" ones have a block of attention and MLP in front of it whose weights they
// share. A hybrid layer is two layers here.
#include <string>
#include <vector>

#include "workloads/models/families/family.h"

namespace orrery {
namespace {

void read_zamba_mamba(FieldReader& reader, LlmConfig& model) {
  MambaConfig& m = model.mamba;
  const std::int64_t inner = model.hidden * reader.size_or({"mamba_expand"}, llm_limits::kHeads, 2);
  m.heads = reader.size({"n_mamba_heads"}, llm_limits::kHeads);
  m.groups = reader.size_or({"mamba_ngroups"}, llm_limits::kHeads, 1);
  reader.require_divides("mamba_ngroups", m.groups, m.heads, "heads of Mamba");
  reader.require_divides("n_mamba_heads", m.heads, inner, "elements");
  m.head_dim = inner / m.heads;
  m.state = reader.size_or({"mamba_d_state"}, llm_limits::kHeadDim, 64);
  m.conv_kernel = reader.size_or({"mamba_d_conv"}, llm_limits::kHeadDim, 4);
  m.chunk = reader.size_or({"chunk_size"}, llm_limits::kTokens, 256);
  // The convolution of the class has a bias whatever `use_conv_bias` says.
  reader.flag("use_conv_bias", true);
  // What a configuration derives from these.
  reader.ignore({"mamba_headdim"});
}

void read_shared_blocks(FieldReader& reader, LlmConfig& model) {
  SharedBlockConfig& block = model.shared_block;
  block.blocks = reader.size_or({"num_mem_blocks"}, llm_limits::kLayers, 1);
  block.attention_adapters = reader.flag("use_shared_attention_adapter", false);
  // The class builds adapters of MLPs whatever the file says of them.
  reader.flag("use_shared_mlp_adapter", true);
  block.adapter_rank = reader.size_or({"adapter_rank"}, llm_limits::kHidden, 128);
  AttentionConfig& a = model.attention;
  a.heads = reader.size({"num_attention_heads"}, llm_limits::kHeads);
  a.kv_heads = reader.size_or({"num_key_value_heads"}, llm_limits::kHeads, a.heads);
  if (2 * model.hidden % a.heads != 0 || a.heads % a.kv_heads != 0)
    reader.invalid("num_attention_heads",
                   "expected a divisor of twice hidden_size, and a multiple "
                   "of num_key_value_heads");
  a.head_dim = 2 * model.hidden / a.heads;
  if (!reader.flag("use_mem_rope", false)) a.rotary_dim = 0;
}

void build_zamba2(FieldReader& reader, LlmConfig& model) {
  read_sizes(reader, model);
  read_zamba_mamba(reader, model);
  read_shared_blocks(reader, model);
  model.mlp.intermediate =
      reader.size_or({"intermediate_size"}, llm_limits::kIntermediate, 4 * model.hidden);
  if (reader.flag("add_bias_linear", false)) reader.unsupported("biases of matrices");
  model.tied_embeddings = reader.tied_embeddings(true);
  const std::vector<std::string> types = reader.texts_or_empty("layers_block_type");
  reader.require_entries("layers_block_type", types.size(), model.layers.size());
  reader.counts_or_empty("hybrid_layer_ids", llm_limits::kLayers);
  model.layers.clear();
  std::int64_t uses = 0;
  for (const std::string& type : types) {
    if (type == "hybrid") {
      const bool again = uses++ >= model.shared_block.blocks;
      model.layers.push_back(
          {.shares_weights = again, .mixer = MixerKind::kSharedBlock, .feeds = false});
    } else if (type != "mamba") {
      reader.unsupported("layers of type '" + type + "' are not modelled");
    }
    model.layers.push_back({.mixer = MixerKind::kMamba2, .feeds = false});
  }
}

const RegisterFamily kZamba2({"zamba2"}, build_zamba2);

}  // namespace
}  // namespace orrery
