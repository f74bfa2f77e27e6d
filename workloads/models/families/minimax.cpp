// SPDX-License-Identifier: Apache-2.0
#include <optional>
#include <vector>

#include "workloads/models/families/family.h"

namespace orrery {
namespace {

/// MiniMax-M2: norms of queries and keys over all heads, a routing bias per expert, and a list of
/// attention kinds of which only 1, softmax attention, is modelled.
void build_minimax_m2(FieldReader& reader, LlmConfig& model) {
  build_llama(reader, model);
  make_all_layers_moe(reader, model, reader.size({"num_local_experts"}, llm_limits::kExperts));
  model.moe.router_bias = reader.flag("use_routing_bias", false);
  model.attention.qk_norm = reader.flag("use_qk_norm", false);
  model.attention.qk_norm_all_heads = reader.text_or({"qk_norm_type"}, "per_layer") == "per_layer";
  for (const std::int64_t kind : reader.counts_or_empty("attn_type_list", llm_limits::kLayers))
    if (kind != 1) reader.unsupported("linear attention layers in 'attn_type_list'");
  read_uniform_window(reader, model);
  const std::int64_t modules = reader.count_or({"num_mtp_modules"}, llm_limits::kLayers, 0);
  const std::int64_t layers = reader.count_or({"mtp_transformer_layers"}, llm_limits::kLayers, 1);
  model.mtp_layers = reader.flag("use_mtp", false) ? modules * layers : 0;
}

/// MiniMax sparse attention; with `sparse_init_block` a token would always see the first blocks.
void read_block_sparse(FieldReader& reader, LlmConfig& model) {
  std::optional<FieldReader> sparse = reader.section("sparse_attention_config");
  if (!sparse) reader.invalid("sparse_attention_config", "missing");
  IndexerConfig& indexer = model.attention.indexer;
  indexer.heads = sparse->size({"sparse_num_index_heads"}, llm_limits::kHeads);
  indexer.head_dim = sparse->size({"sparse_index_dim"}, llm_limits::kHeadDim);
  indexer.block = sparse->size({"sparse_block_size"}, llm_limits::kTokens);
  indexer.top_k = indexer.block * sparse->size({"sparse_topk_blocks"}, llm_limits::kHeads);
  if (indexer.heads != model.attention.kv_heads)
    sparse->unsupported("index heads other than one for each KV head are not modelled");
  if (sparse->text_or({"sparse_score_type"}, "max") != "max")
    sparse->unsupported("scores of blocks other than their largest are not modelled");
  if (!sparse->flag("use_sparse_attention", true))
    sparse->unsupported("its sparse attention is switched off");
  // Blocks that are always among the chosen ones.
  sparse->count_or({"sparse_init_block"}, llm_limits::kHeads, 0);
  sparse->count_or({"sparse_local_block"}, llm_limits::kHeads, 1);
  const std::size_t layers = model.layers.size();
  const std::vector<bool> sparse_layers =
      sparse->switches_or("sparse_attention_freq", layers, true);
  const std::vector<bool> without_values =
      sparse->switches_or("sparse_disable_index_value", layers, true);
  for (std::size_t i = 0; i < layers; ++i) {
    if (!sparse_layers[i]) continue;
    if (!without_values[i]) sparse->unsupported("values of indexers are not modelled");
    model.layers[i].mixer = MixerKind::kBlockSparse;
  }
  sparse->refuse_unread_structure();
}

/// MiniMax-M3: the first layers are dense, in attention and MLP; names of its files on Hugging
/// Face.
void build_minimax_m3(FieldReader& reader, LlmConfig& model) {
  read_sizes(reader, model);
  read_grouped_attention(reader, model);
  model.attention.qk_norm = reader.flag("use_qk_norm", false);
  model.attention.qk_norm_all_heads = reader.text_or({"qk_norm_type"}, "per_head") == "per_layer";
  model.attention.output_gate = reader.flag("attention_output_gate", false);
  model.tied_embeddings = reader.tied_embeddings(false);
  model.mlp.intermediate = reader.size({"dense_intermediate_size"}, llm_limits::kIntermediate);
  MoeConfig& moe = model.moe;
  moe.experts = reader.size({"num_local_experts"}, llm_limits::kExperts);
  moe.experts_per_token = read_top_k(reader, moe.experts);
  moe.intermediate =
      reader.size({"moe_intermediate_size", "intermediate_size"}, llm_limits::kIntermediate);
  moe.shared_experts = reader.count_or({"n_shared_experts"}, llm_limits::kSharedExperts, 0);
  moe.shared_intermediate =
      moe.shared_experts *
      reader.size_or({"shared_intermediate_size"}, llm_limits::kIntermediate, moe.intermediate);
  moe.router_bias = reader.flag("use_routing_bias", false);
  moe.clamped = reader.text_or({"hidden_act"}, "silu") == "swigluoai";
  const std::int64_t dense = reader.count_or({"first_k_dense_replace"}, llm_limits::kLayers, 0);
  const std::vector<bool> routed = reader.switches_or("moe_layer_freq", model.layers.size(), true);
  for (std::size_t i = 0; i < model.layers.size(); ++i)
    model.layers[i].moe = routed[i] && static_cast<std::int64_t>(i) >= dense;
  read_block_sparse(reader, model);
  reader.count_or({"num_mtp_modules"}, llm_limits::kLayers, 0);
  model.mtp_layers = reader.count_or({"num_nextn_predict_layers"}, llm_limits::kLayers, 0);
}

const RegisterFamily kMinimaxM3({"minimax_m3"}, build_minimax_m3);
const RegisterFamily kMinimaxM2({"minimax_m2"}, build_minimax_m2);

}  // namespace
}  // namespace orrery
