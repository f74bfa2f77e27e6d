// SPDX-License-Identifier: Apache-2.0
#include "sim/app/questions/describe/describe.h"

#include <fmt/core.h>
#include <algorithm>
#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "sim/results/table.h"
#include "workloads/layers/closed_forms.h"
#include "workloads/layers/parts/mixer.h"
#include "workloads/layers/rank_parameters.h"
#include "workloads/models/config/model_config.h"
#include "workloads/models/encoder_alone.h"
#include "workloads/models/huggingface/checkpoint_format.h"

namespace orrery {
namespace {

constexpr std::int64_t kContexts[] = {4096, 32768, 131072};

std::string format_text(StoredFormat format, const Quantization& stored) {
  static const std::map<StoredFormat, std::string> texts = {
      {StoredFormat::kSixteenBit, "16 bits"},        {StoredFormat::kFourBit, "4-bit weights"},
      {StoredFormat::kWideFourBit, "4-bit weights"}, {StoredFormat::kMxFourBit, "mxfp4"},
      {StoredFormat::kEightBit, "8-bit weights"},    {StoredFormat::kEightFloat, "fp8"}};
  return format == StoredFormat::kPrecision ? to_string(stored.precision) : texts.at(format);
}

/// How a checkpoint stores a part of most layers that have it.
std::string stored_as(const LlmConfig& model, const Quantization& stored, bool moe,
                      StoredFormat LayerConfig::*part) {
  std::int64_t layers = 0, left_out = 0;
  for (const LayerConfig& layer : model.layers) {
    if (layer.moe != moe) continue;
    ++layers;
    left_out += layer.*part == StoredFormat::kSixteenBit ? 1 : 0;
  }
  if (layers == 0) return {};
  if (left_out == layers) return "16 bits";
  // Of several formats that which the first of them has.
  const auto packed = std::ranges::find_if(model.layers, [&](const LayerConfig& layer) {
    return layer.moe == moe && layer.*part != StoredFormat::kSixteenBit;
  });
  const bool several = stored.name.find(", ") != std::string::npos;
  std::string name = several ? format_text((*packed).*part, stored) : stored.name;
  if (left_out == 0) return name;
  return fmt::format("{}, 16 bits in {} of {} layers", name, left_out, layers);
}

void add_checkpoint(NamedValues& values, const LlmConfig& model, const Quantization& stored) {
  const bool moe = model.has_moe();
  values.add("checkpoint", stored.name);
  values.add("precision of products", to_string(stored.precision));
  if (stored.kv_cache) values.add("scales for a KV cache of", to_string(*stored.kv_cache));
  values.add("stored: attention", stored_as(model, stored, moe, &LayerConfig::attention));
  const std::string dense = stored_as(model, stored, false, &LayerConfig::feed);
  if (!dense.empty()) values.add("stored: MLP", dense);
  values.add("stored: head", format_text(model.head, stored));
  if (!moe) return;
  values.add("stored: experts", stored_as(model, stored, true, &LayerConfig::feed));
  if (model.moe.shared_intermediate > 0)
    values.add("stored: shared experts", stored_as(model, stored, true, &LayerConfig::shared));
}

/// "attention 40 x 128, 8 KV heads, chunks of 8192".
std::string mixer_text(const LlmConfig& llm, const LayerConfig& layer) {
  const Mixer* mixer = mixer_of(llm, layer);
  if (mixer == nullptr) return {};
  const bool attends = layer.mixer == MixerKind::kAttention;
  return mixer->name() + (attends ? attention_sizes(llm, layer) : mixer->sizes(llm, layer));
}

/// "1 of 16 experts x 8192, shared 8192", "MLP 28672".
std::string feed_text(const LlmConfig& llm, const LayerConfig& layer) {
  if (!layer.feeds) return {};
  if (!layer.moe) return fmt::format("MLP {}", llm.mlp_of(layer).intermediate);
  const MoeConfig& m = llm.moe;
  std::string text =
      fmt::format("{} of {} experts x {}", m.experts_per_token, m.experts, m.intermediate);
  if (m.shared_intermediate == 0) return text;
  return fmt::format("{}, shared {}", text, m.shared_intermediate);
}

/// Adds to the number of a name; names are in the order of their first.
using Counts = std::vector<std::pair<std::string, std::int64_t>>;
void add_to(Counts& counts, const std::string& name, std::int64_t number) {
  const auto known = std::ranges::find(counts, name, &Counts::value_type::first);
  if (known == counts.end()) {
    counts.emplace_back(name, number);
  } else {
    known->second += number;
  }
}

/// How many layers are made of what, in the order of their first.
void add_layers(NamedValues& values, const LlmConfig& llm) {
  Counts kinds;
  for (const LayerConfig& layer : llm.layers) {
    std::string text = mixer_text(llm, layer);
    const std::string feed = feed_text(llm, layer);
    if (!text.empty() && !feed.empty()) text += "; ";
    add_to(kinds, text + feed, 1);
  }
  for (const auto& [text, count] : kinds) values.add_count("layers: " + text, count);
}

/// Parameters by what has them; norms are in the part that they are in front of.
void add_parameters(NamedValues& values, const LlmConfig& llm) {
  const ParameterCount count = count_parameters(llm);
  Counts parts = {{"embedding", count.embedding}};
  const auto add = [&parts](const std::string& name, std::int64_t parameters) {
    if (parameters != 0) add_to(parts, name, parameters);
  };
  for (const LayerConfig& layer : llm.layers) {
    const LayerHalves halves = layer_halves(llm, layer, {});
    const Mixer* mixer = mixer_of(llm, layer);
    add(mixer == nullptr ? "attention" : mixer->name(), halves.attention.total());
    add(layer.moe ? "experts" : "MLP", halves.feed.total());
  }
  if (llm.vision) {
    const std::int64_t projector = tower_parameters(*llm.vision, 1).projector;
    add("vision tower", count.vision - projector);
    add("projector", projector);
  }
  add(llm.pooler ? "pooler" : "head", count.head);
  add("final norm", count.final_norm);
  for (const auto& [name, parameters] : parts) values.add_count("parameters: " + name, parameters);
  values.add_count("parameters", count.total);
  values.add_count("parameters used by one token", count.active);
  if (llm.mtp_layers > 0)
    values.add_count("parameters of modules of multi-token prediction",
                     llm.mtp_layers * module_parameters(llm, {}).total());
}

/// What sees images, and what images of some sizes become.
void add_vision(NamedValues& values, const VisionTower& tower) {
  values.add("vision tower", fmt::format("{}, {} layers of {}, patches of {}", tower.name,
                                         tower.layers, tower.hidden, tower.patch));
  constexpr std::int64_t kSides[] = {448, 1024, 2048};
  for (const std::int64_t side : kSides) {
    const ImagePatches image = tower.patches({side, side});
    const std::string of =
        "of an image" + (tower.rule.same_for_all() ? "" : fmt::format(" of {0} x {0}", side));
    values.add_count("patches " + of, image.patches());
    values.add_count("tokens " + of, image.tokens);
    if (tower.rule.same_for_all()) return;
  }
}

/// Bytes of a sequence of so many tokens, with 16 bits an element of the cache, 8 of indexers.
struct Held {
  double cache = 0, state = 0;
};
Held held(const LlmConfig& llm, std::int64_t tokens) {
  constexpr double kElement = 2;
  Held all;
  for (const LayerConfig& layer : llm.layers) {
    const Mixer* mixer = mixer_of(llm, layer);
    if (mixer == nullptr) continue;
    const SequenceCache cache = mixer->cache(llm, layer, 1);
    const std::int64_t most = layer.most_kept();
    const std::int64_t kept = most > 0 ? std::min(most, tokens) : tokens;
    all.cache += static_cast<double>(kept) * (kElement * static_cast<double>(cache.token_elements) +
                                              static_cast<double>(cache.index_elements));
    all.state += cache.state_bytes;
  }
  return all;
}

/// What a token adds to the cache before any window is full, and once all are.
void add_cache(NamedValues& values, const LlmConfig& llm) {
  constexpr std::int64_t kLong = std::int64_t{1} << 36;
  const double first = held(llm, 1).cache;
  const double later = held(llm, kLong + 1).cache - held(llm, kLong).cache;
  values.add_quantity("KV cache of a token in 16 bits", first, "B");
  if (later != first)
    values.add_quantity("KV cache of a token beyond windows and chunks", later, "B");
  for (const std::int64_t tokens : kContexts) {
    if (first == 0) break;  // states alone
    values.add_quantity(fmt::format("KV cache of {} tokens", tokens), held(llm, tokens).cache, "B");
  }
  if (const double state = held(llm, 1).state; state > 0)
    values.add_quantity("state of a sequence", state, "B");
}

/// An encoder's tokens see all of their sequence, which its positions limit.
void add_encoder_flops(NamedValues& values, const LlmConfig& llm) {
  for (const std::int64_t tokens : {std::int64_t{128}, std::int64_t{512}, kContexts[0]}) {
    if (llm.positions > 0 && tokens > llm.positions) continue;
    values.add_quantity(fmt::format("FLOPs of a token in a sequence of {}", tokens),
                        model_flops_per_token(llm, tokens, false).base(), "FLOP");
  }
}

void add_flops(NamedValues& values, const LlmConfig& llm) {
  if (is_encoder_alone(llm)) return add_encoder_flops(values, llm);
  if (llm.has_encoder()) return;
  for (const std::int64_t context : kContexts)
    values.add_quantity(fmt::format("FLOPs of a token after {}", context),
                        model_flops_per_token(llm, context, false).base(), "FLOP");
}

}  // namespace

Answer model_details(const ModelConfig& model) {
  const LlmConfig llm = model.build();
  NamedValues values;
  values.add_count("layers", llm.layer_count());
  add_layers(values, llm);
  values.add_count("hidden", llm.hidden);
  if (llm.attention.heads > 0) values.add_count("heads", llm.attention.heads);
  values.add_count("vocabulary", llm.vocabulary);
  if (llm.has_moe()) {
    values.add_count("experts", llm.moe.experts);
    values.add_count("experts per token", llm.moe.experts_per_token);
  }
  if (llm.mtp_layers > 0) values.add_count("modules of multi-token prediction", llm.mtp_layers);
  if (llm.vision) add_vision(values, *llm.vision);
  add_parameters(values, llm);
  if (!is_encoder_alone(llm)) add_cache(values, llm);
  add_flops(values, llm);
  if (const auto stored = model.hf.empty() ? std::nullopt : load_quantization(model.hf.path))
    add_checkpoint(values, llm, *stored);
  Answer answer = values.answer(Table::Align::kRight);
  if (!model.source.empty()) answer.add("source: " + model.source + "\n");
  std::vector<std::string> warnings = llm.warnings;
  if (!llm.asks_precision.empty()) warnings.push_back(llm.asks_precision);
  for (const std::string& warning : warnings) answer.add("warning: " + warning + "\n");
  answer.json["source"] = model.source;
  answer.json["warnings"] = warnings;
  return answer;
}

}  // namespace orrery
