// SPDX-License-Identifier: Apache-2.0
#include "workloads/models/config/model_config.h"

#include "sim/config/foreign_file.h"
#include "sim/config/schema.h"
#include "workloads/base/limits.h"
#include "workloads/models/huggingface/huggingface.h"

namespace orrery {
namespace {

using config::Bounds;

Bounds one_to(std::int64_t limit) { return config::between(1, static_cast<double>(limit)); }
Bounds zero_to(std::int64_t limit) { return config::between(0, static_cast<double>(limit)); }

bool kv_heads_divide(const DimensionsConfig& d) {
  return d.kv_heads == 0 || d.heads % d.kv_heads == 0;
}

/// Heads of hidden / heads must be whole and within the limit; a heads of 0 is reported by its
/// bound.
bool head_dim_follows(const DimensionsConfig& d) {
  if (d.head_dim > 0 || d.heads == 0) return true;
  return d.hidden % d.heads == 0 && d.hidden / d.heads <= llm_limits::kHeadDim;
}

LlmConfig from_dimensions(const DimensionsConfig& d) {
  LlmConfig model;
  model.family = "dimensions";
  model.hidden = d.hidden;
  model.vocabulary = d.vocabulary;
  model.positions = d.learned_positions;
  model.tied_embeddings = d.tied_embeddings;
  model.norm_bias = d.layer_norm;
  model.attention.heads = d.heads;
  model.attention.kv_heads = d.kv_heads > 0 ? d.kv_heads : d.heads;
  model.attention.head_dim = d.head_dim > 0 ? d.head_dim : d.hidden / d.heads;
  model.attention.qkv_bias = d.biases;
  model.attention.output_bias = d.biases;
  model.mlp.intermediate = d.intermediate > 0 ? d.intermediate : 4 * d.hidden;
  model.mlp.gated = d.gated;
  model.mlp.bias = d.biases;
  model.parallel_block = d.parallel_block;
  if (d.parallel_block) model.norms_per_layer = 1;
  LayerConfig layer;
  layer.window = d.window;
  layer.kind = d.encoder_layers > 0 ? LayerKind::kCross : LayerKind::kDecoder;
  model.layers.assign(static_cast<std::size_t>(d.layers), layer);
  for (std::int64_t i = 0; i < d.encoder_layers; ++i)
    model.layers[static_cast<std::size_t>(i)].kind = LayerKind::kEncoder;
  return model;
}

/// `model: ./config.json`. Files of the Hugging Face Hub have one of these keys.
const config::RegisterForeignFile registered_huggingface(
    "models", {"model", "hf", {"model_type", "architectures"}});

}  // namespace

const config::Schema<DimensionsConfig>& DimensionsConfig::schema() {
  using D = DimensionsConfig;
  static const config::Schema<D> schema =
      config::Schema<D>("dimensions", "a dense transformer by its sizes")
          .required("layers", &D::layers, "number of layers", one_to(llm_limits::kLayers))
          .required("hidden", &D::hidden, "width of a token", one_to(llm_limits::kHidden))
          .required("heads", &D::heads, "attention heads", one_to(llm_limits::kHeads))
          .optional("kv_heads", &D::kv_heads, "heads of keys and values; 0: as many as heads",
                    zero_to(llm_limits::kHeads))
          .optional("head_dim", &D::head_dim, "width of a head; 0: hidden / heads",
                    zero_to(llm_limits::kHeadDim))
          .optional("intermediate", &D::intermediate, "width of the MLP; 0: 4 x hidden",
                    zero_to(llm_limits::kIntermediate))
          .required("vocabulary", &D::vocabulary, "entries of the embedding table",
                    one_to(llm_limits::kVocabulary))
          .optional("learned_positions", &D::learned_positions,
                    "learned position embeddings; 0: rotary", zero_to(llm_limits::kTokens))
          .optional("encoder_layers", &D::encoder_layers,
                    "layers of an encoder, the first of all layers, whose output the others attend "
                    "to besides (T5); 0: a decoder alone",
                    zero_to(llm_limits::kLayers))
          .optional("gated", &D::gated, "gated MLP of three matrices (SwiGLU)")
          .optional("biases", &D::biases, "biases in attention and MLP")
          .optional("layer_norm", &D::layer_norm, "LayerNorm with a bias; false: RMS norm")
          .optional("tied_embeddings", &D::tied_embeddings, "the head is the embedding table")
          .optional("parallel_block", &D::parallel_block,
                    "attention and MLP beside each other, from one norm (PaLM, GPT-J)")
          .optional("window", &D::window, "sliding window of attention in tokens; 0: none",
                    zero_to(llm_limits::kTokens))
          .check(
              "the encoder must leave layers to the decoder",
              [](const D& d) { return d.encoder_layers == 0 || d.encoder_layers < d.layers; },
              "encoder_layers")
          .check("kv_heads must divide heads", kv_heads_divide, "kv_heads")
          .check("heads must divide hidden into heads of at most 8192, unless head_dim is given",
                 head_dim_follows, "heads");
  return schema;
}

const config::Schema<ModelConfig>& ModelConfig::schema() {
  using M = ModelConfig;
  static const config::Schema<M> schema =
      config::Schema<M>("model", "a language model")
          .named("model", &M::name)
          .optional("source", &M::source, "where its sizes were published")
          .optional("hf", &M::hf, "path of a Hugging Face config.json")
          .optional("language_only", &M::language_only,
                    "leaves out the vision tower of the file, as engines do that serve text alone "
                    "(vLLM: language_model_only)")
          .optional("dimensions", &M::dimensions, "sizes of a dense transformer, instead of hf")
          .check(
              "give exactly one of hf and dimensions",
              [](const M& m) { return m.hf.empty() == m.dimensions.has_value(); }, "model");
  return schema;
}

LlmConfig ModelConfig::build() const {
  LlmConfig model = dimensions ? from_dimensions(*dimensions) : load_huggingface(hf.path);
  if (!name.empty()) model.name = name;
  if (language_only) model.vision.reset();
  return model;
}

}  // namespace orrery
