// SPDX-License-Identifier: Apache-2.0
// RWKV-5 and 6 (arXiv 2404.05892) in the names of RWKV/rwkv-5-world and rwkv-6-world
// (configuration_rwkv5.py, modeling_rwkv6.py), and RWKV-7 (2503.14456) in those of
// flash-linear-attention (fla/models/rwkv7/configuration_rwkv7.py). Every block is two layers here:
// time mixing and channel mixing, each with its norm.
#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "workloads/models/families/family.h"

namespace orrery {
namespace {

void make_blocks(FieldReader& reader, LlmConfig& model) {
  std::vector<LayerConfig> layers;
  for (std::size_t i = 0; i < model.layers.size(); ++i) {
    layers.push_back({.mixer = MixerKind::kTimeMix, .first = i == 0, .feeds = false});
    layers.push_back({.mixer = MixerKind::kChannelMix, .feeds = false});
  }
  model.layers = layers;
  model.norm_bias = true;
  // All published models have a head of their own (RWKV-LM, src/model.py: emb and head).
  if (reader.tied_embeddings(false))
    model.warnings.emplace_back(
        "tie_word_embeddings is passed over: published models of RWKV have a head of their own");
}

void read_heads(FieldReader& reader, LlmConfig& model, FieldReader::Names dim) {
  RwkvConfig& r = model.rwkv;
  const std::int64_t width =
      reader.size_or({"attention_hidden_size"}, llm_limits::kHidden, model.hidden);
  r.head_dim = reader.size_or(dim, llm_limits::kHeadDim, 64);
  reader.require_divides_width(*dim.begin(), r.head_dim, width);
  r.heads = width / r.head_dim;
}

/// Versions 5.2 and 6: widths that a file leaves out are those of RWKV-LM, src/model.py.
void build_rwkv(FieldReader& reader, LlmConfig& model) {
  constexpr std::int64_t kUnit = 32, kLarge = 4096;
  read_sizes(reader, model);
  RwkvConfig& r = model.rwkv;
  r.version = model.family == "rwkv5" ? 5 : 6;
  const std::string kind = reader.text_or({"model_version"}, "5_2");
  if (r.version == 5 && kind != "5_2") reader.unsupported("version '" + kind + "' of RWKV-5");
  read_heads(reader, model, {"head_size"});
  r.channels = reader.size_or({"intermediate_size"}, llm_limits::kIntermediate,
                              model.hidden * 7 / 2 / kUnit * kUnit);
  if (r.version == 6) {
    const std::int64_t twice = model.hidden == kLarge ? 2 : 1;
    r.mix_rank = twice * kUnit;
    r.decay_rank = twice * 2 * kUnit;
  }
  make_blocks(reader, model);
}

/// Columns of pairs of matrices where a file leaves them out: fla/layers/rwkv7.py.
std::int64_t rank_of(double factor, double power, std::int64_t hidden) {
  const double width = factor * std::pow(static_cast<double>(hidden), power);
  return std::max<std::int64_t>(32, std::llround(width / 32) * 32);
}

void build_rwkv7(FieldReader& reader, LlmConfig& model) {
  read_sizes(reader, model);
  RwkvConfig& r = model.rwkv;
  r.version = 7;
  reader.defaults_are_of("fla's RWKV7Attention");
  read_heads(reader, model, {"head_dim"});
  r.channels = reader.size_or({"intermediate_size"}, llm_limits::kIntermediate, 4 * model.hidden);
  const auto rank = [&](const char* field, double factor, double power) {
    return reader.size_of_class({field}, llm_limits::kHidden, rank_of(factor, power, model.hidden));
  };
  r.decay_rank = rank("decay_low_rank_dim", 1.8, 0.5);
  r.rate_rank = rank("a_low_rank_dim", 1.8, 0.5);
  r.value_rank = rank("v_low_rank_dim", 1.3, 0.5);
  r.gate_rank = rank("gate_low_rank_dim", 0.6, 0.8);
  if (reader.has("attn")) reader.unsupported("attention between layers of RWKV-7");
  make_blocks(reader, model);
}

const RegisterFamily kRwkv({"rwkv5", "rwkv6"}, build_rwkv);
const RegisterFamily kRwkv7({"rwkv7"}, build_rwkv7);

}  // namespace
}  // namespace orrery
