// SPDX-License-Identifier: Apache-2.0
#include "workloads/models/families/family.h"

namespace orrery {
namespace {

/// T5 (arXiv 1910.10683) and its kin: RMS norms, no biases, positions by learned biases of scores
/// in the first layer of encoder and decoder; gated MLPs and a head of its own from version 1.1 on,
/// as mT5 (arXiv 2010.11934) has them.
void build_t5(FieldReader& reader, LlmConfig& model) {
  model.hidden = reader.size({"d_model"}, llm_limits::kHidden);
  model.vocabulary = reader.size({"vocab_size"}, llm_limits::kVocabulary);
  AttentionConfig& a = model.attention;
  a.heads = reader.size({"num_heads"}, llm_limits::kHeads);
  a.kv_heads = a.heads;
  a.head_dim = reader.size({"d_kv"}, llm_limits::kHeadDim);
  model.mlp.intermediate = reader.size({"d_ff"}, llm_limits::kIntermediate);
  const std::string function = reader.text_or({"feed_forward_proj"}, "relu");
  model.mlp.gated = function.rfind("gated-", 0) == 0;
  model.relative_positions =
      reader.size_or({"relative_attention_num_buckets"}, llm_limits::kTokens, 32);
  model.tied_embeddings = reader.tied_embeddings(true);
  if (!reader.flag("is_encoder_decoder", true))
    reader.unsupported("the encoder alone is not modelled");
  const std::int64_t encoder = reader.size({"num_layers"}, llm_limits::kLayers);
  const std::int64_t decoder = reader.size_or({"num_decoder_layers"}, llm_limits::kLayers, encoder);
  for (std::int64_t i = 0; i < encoder + decoder; ++i) {
    LayerConfig layer;
    layer.kind = i < encoder ? LayerKind::kEncoder : LayerKind::kCross;
    layer.position_biases = i == 0 || i == encoder;
    model.layers.push_back(layer);
  }
}

const RegisterFamily kT5({"t5", "mt5"}, build_t5);

}  // namespace
}  // namespace orrery
