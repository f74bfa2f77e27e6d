// SPDX-License-Identifier: Apache-2.0
// Encoders alone, for classifiers and embeddings: BERT (arXiv 1810.04805), RoBERTa (1907.11692) and
// XLM-R (1911.02116), DistilBERT (1910.01108), ModernBERT (2412.13663) as transformers' models of
// these names have them without heads, and Nomic BERT (2402.01613, nomic-ai's modeling_hf_nomic_
// bert.py). Each has a norm behind its embeddings or behind its layers, which is its encoder's one.
#include <fmt/core.h>

#include <string>
#include <vector>

#include "workloads/models/families/family.h"

namespace orrery {
namespace {

/// Layers that see all of a sequence; heads of other classes are left out, and said to be.
void make_encoder(FieldReader& reader, LlmConfig& model, bool pools) {
  model.final_norm = false;
  model.tied_embeddings = true;
  reader.tied_embeddings(true);
  for (LayerConfig& layer : model.layers) layer.kind = LayerKind::kEncoder;
  const std::vector<std::string> classes = reader.texts_or_empty("architectures");
  const std::string shown = classes.empty() ? "" : classes.front();
  const bool headless = shown.empty() || shown.find("Model") != std::string::npos;
  if (!headless)
    model.warnings.push_back(
        fmt::format("the head of {} is left out: the encoder alone is modelled", shown));
  // Classes that predict masked tokens have no layer that pools.
  model.pooler = pools && shown.find("ForMaskedLM") == std::string::npos;
  if (reader.flag("is_decoder", false) || reader.flag("add_cross_attention", false))
    reader.unsupported("an encoder as a decoder");
}

void build_bert(FieldReader& reader, LlmConfig& model) {
  read_sizes(reader, model);
  read_grouped_attention(reader, model);
  make_classical(model);
  model.mlp.intermediate = reader.size({"intermediate_size"}, llm_limits::kIntermediate);
  const std::string positions = reader.text_or({"position_embedding_type"}, "absolute");
  if (positions != "absolute") reader.unsupported("positions of type '" + positions + "'");
  model.positions = reader.size({"max_position_embeddings"}, llm_limits::kTokens);
  model.segments = reader.size_or({"type_vocab_size"}, llm_limits::kTokens, 2);
  make_encoder(reader, model, true);
}

/// Positions are counted from behind that of padding, which is the second of the table.
void build_roberta(FieldReader& reader, LlmConfig& model) {
  constexpr std::int64_t kUnused = 2;
  build_bert(reader, model);
  if (model.positions <= kUnused) reader.invalid("max_position_embeddings", "expected more than 2");
  model.positions -= kUnused;
  model.segments += kUnused;
}

void build_distilbert(FieldReader& reader, LlmConfig& model) {
  model.hidden = reader.size({"dim"}, llm_limits::kHidden);
  model.vocabulary = reader.size({"vocab_size"}, llm_limits::kVocabulary);
  const std::int64_t layers = reader.size({"n_layers"}, llm_limits::kLayers);
  model.layers.assign(static_cast<std::size_t>(layers), LayerConfig{});
  AttentionConfig& a = model.attention;
  a.heads = a.kv_heads = reader.size({"n_heads"}, llm_limits::kHeads);
  if (model.hidden % a.heads != 0) reader.invalid("n_heads", "must divide dim");
  a.head_dim = model.hidden / a.heads;
  make_classical(model);
  model.mlp.intermediate = reader.size({"hidden_dim"}, llm_limits::kIntermediate);
  model.positions = reader.size({"max_position_embeddings"}, llm_limits::kTokens);
  make_encoder(reader, model, false);
}

/// Gated MLPs, no biases, rotary positions; two layers of three see a window around each token. The
/// norm of the embeddings stands for that of the first layer, which has none.
void build_modernbert(FieldReader& reader, LlmConfig& model) {
  read_sizes(reader, model);
  read_grouped_attention(reader, model);
  AttentionConfig& a = model.attention;
  a.qkv_bias = a.output_bias = reader.flag("attention_bias", false);
  model.mlp.intermediate = reader.size({"intermediate_size"}, llm_limits::kIntermediate);
  model.mlp.bias = reader.flag("mlp_bias", false);
  model.norm_bias = reader.flag("norm_bias", false);
  const std::int64_t local = reader.size_or({"local_attention"}, llm_limits::kTokens, 128);
  const std::int64_t every = reader.size_or({"global_attn_every_n_layers"}, llm_limits::kLayers, 3);
  for (std::int64_t i = 0; i < model.layer_count(); ++i)
    if (i % every != 0) model.layers[static_cast<std::size_t>(i)].window = local / 2 * 2 + 1;
  // Which tokens heads predict in training.
  reader.ignore({"sparse_prediction", "sparse_pred_ignore_index"});
  make_encoder(reader, model, false);
}

/// BERT with rotary positions and gated MLPs without biases.
void build_nomic_bert(FieldReader& reader, LlmConfig& model) {
  read_sizes(reader, model);
  read_grouped_attention(reader, model);
  AttentionConfig& a = model.attention;
  a.qkv_bias = a.output_bias = reader.flag("qkv_proj_bias", true);
  const std::string function = reader.text_or({"activation_function"}, "gelu");
  model.mlp.gated = function == "swiglu" || function == "geglu" || function == "glu";
  model.mlp.bias = reader.flag("mlp_fc1_bias", true);
  if (reader.flag("mlp_fc2_bias", true) != model.mlp.bias)
    reader.unsupported("biases in one matrix of an MLP");
  model.mlp.intermediate = reader.size_or({"n_inner"}, llm_limits::kIntermediate, 4 * model.hidden);
  model.norm_bias = !reader.flag("use_rms_norm", false);
  const double rotated = reader.fraction_or({"rotary_emb_fraction"}, 0);
  a.rotary_dim = static_cast<std::int64_t>(rotated * static_cast<double>(a.head_dim));
  const std::int64_t positions = reader.size({"n_positions"}, llm_limits::kTokens);
  if (rotated == 0) model.positions = positions;
  model.segments = reader.count_or({"type_vocab_size"}, llm_limits::kTokens, 0);
  if (reader.flag("parallel_block", false) || reader.flag("prenorm", false))
    reader.unsupported("layers with norms in front, or with parallel halves");
  if (reader.count_or({"moe_every_n_layers"}, llm_limits::kLayers, 0) > 0)
    reader.unsupported("experts in an encoder");
  // Whether kernels are fused, and what is shared out over ranks in training.
  reader.ignore({"num_experts", "moe_top_k", "num_shared_experts", "expert_choice_router",
                 "moe_impl", "moe_resid_pdrop", "moe_normalize_expert_weights",
                 "router_aux_loss_coef", "ffn_div", "parallel_block_tied_norm"});
  make_encoder(reader, model, false);
}

const RegisterFamily kBert({"bert"}, build_bert);
const RegisterFamily kRoberta({"roberta", "xlm-roberta", "camembert"}, build_roberta);
const RegisterFamily kDistilbert({"distilbert"}, build_distilbert);
const RegisterFamily kModernbert({"modernbert"}, build_modernbert);
const RegisterFamily kNomicBert({"nomic_bert"}, build_nomic_bert);

}  // namespace
}  // namespace orrery
