// SPDX-License-Identifier: Apache-2.0
#include "workloads/models/huggingface/checkpoint_format.h"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <string_view>
#include <utility>

#include "workloads/models/fields/json_fields.h"
#include "workloads/models/huggingface/checkpoint_groups.h"

namespace orrery {
namespace {

using nlohmann::json;
using namespace json_fields;

/// Parts of a layer that a checkpoint quantises, or leaves out, together.
enum class Part : std::uint8_t { kAttention, kMlp, kExperts, kSharedExperts };
using PartNames = std::array<std::vector<std::string>, 4>;

/// Names under which published models have the last matrix of a part of a layer. The dense MLP that
/// Gemma 4 has beside its experts is called what others call the layer without experts.
const std::vector<std::string>& modules_of(Part part, const std::string& family) {
  static const PartNames usual = {
      std::vector<std::string>{"self_attn.o_proj", "mixer.o_proj", "mixer.out_proj",
                               "linear_attn.out_proj"},
      {"mlp.down_proj", "mixer.down_proj", "feed_forward.down_proj"},
      {"mlp.experts.0.down_proj", "mlp.experts.down_proj", "block_sparse_moe.experts.0.w2",
       "mixer.experts.0.down_proj", "feed_forward.experts.0.down_proj",
       "feed_forward.experts.down_proj"},
      {"mlp.shared_experts.down_proj", "mlp.shared_expert.down_proj",
       "mixer.shared_experts.down_proj", "feed_forward.shared_expert.down_proj"}};
  static const PartNames gemma4 = {std::vector<std::string>{"self_attn.o_proj"},
                                   {"mlp.down_proj"},
                                   {"experts.0.down_proj", "experts.down_proj"},
                                   {"mlp.down_proj"}};
  return (family == "gemma4_text" ? gemma4 : usual)[static_cast<std::size_t>(part)];
}

/// The whole names of a part of a layer, in all ways in which models are nested in each other.
std::vector<std::string> names_of(Part part, const std::string& family, std::size_t layer) {
  std::vector<std::string> names;
  for (const std::string& module : modules_of(part, family)) {
    for (const char* prefix :
         {"model.", "language_model.model.", "model.language_model.", "backbone."}) {
      std::string name = prefix;
      name.append("layers.").append(std::to_string(layer)).append(".").append(module);
      names.push_back(std::move(name));
    }
  }
  return names;
}

/// The formats of a checkpoint, and what none of them is of.
class StoredParts {
 public:
  StoredParts(const json& config, std::vector<FormatGroup> groups)
      : groups_(std::move(groups)), experts_only_(text_at(config, "quant_method") == "mxfp4") {
    for (const char* key :
         {"ignore", "modules_to_not_convert", "ignored_layers", "exclude_modules"})
      for (std::string& pattern : texts_at(config, key)) ignored_.emplace_back(std::move(pattern));
  }

  /// The format in which products run: of several the narrowest, and of those that of most modules.
  const Quantization& main() const {
    return std::min_element(groups_.begin(), groups_.end(),
                            [](const FormatGroup& a, const FormatGroup& b) {
                              const double first = element_bytes(a.format.precision);
                              const double second = element_bytes(b.format.precision);
                              if (first != second) return first < second;
                              return a.all_matrices && !b.all_matrices;
                            })
        ->format;
  }

  std::string name() const {
    std::string all;
    for (const FormatGroup& group : groups_) {
      if (!all.empty()) all += ", ";
      all += group.format.name;
    }
    return all;
  }

  /// The head is in a format only where somebody says so of it: GPTQ's `lm_head`, or a module that
  /// a group names. "Linear" is none of it, as engines read such files (vLLM's LinearBase).
  StoredFormat of_head(bool packed) const {
    const auto is = [](const auto& named) {
      return std::any_of(kHeads.begin(), kHeads.end(), named);
    };
    for (const ModulePattern& pattern : ignored_)
      if (is([&](const char* head) { return pattern.names(head); }))
        return StoredFormat::kSixteenBit;
    for (const FormatGroup& group : groups_)
      if (is([&](const char* head) { return group.names(head); })) return beside_main(group.format);
    return packed ? beside_main(main()) : StoredFormat::kSixteenBit;
  }

  StoredFormat of(Part part, const std::string& family, std::size_t layer) const {
    // The plain method mxfp4 packs matrices of experts alone.
    if (experts_only_ && part != Part::kExperts) return StoredFormat::kSixteenBit;
    const std::vector<std::string> names = names_of(part, family, layer);
    const auto any = [&names](const auto& named) {
      return std::any_of(names.begin(), names.end(), named);
    };
    const auto is_ignored = [this](const std::string& name) {
      return std::any_of(ignored_.begin(), ignored_.end(),
                         [&](const ModulePattern& pattern) { return pattern.names(name); });
    };
    if (any(is_ignored)) return StoredFormat::kSixteenBit;
    for (const FormatGroup& group : groups_)
      if (any([&group](const std::string& name) { return group.names(name); }))
        return beside_main(group.format);
    for (const FormatGroup& group : groups_)
      if (group.all_matrices) return beside_main(group.format);
    return StoredFormat::kSixteenBit;
  }

 private:
  static constexpr std::array<const char*, 2> kHeads = {"lm_head", "language_model.lm_head"};

  /// How products in a format run where the main one is another.
  StoredFormat beside_main(const Quantization& format) const {
    const Quantization& other = main();
    const bool narrow = element_bytes(other.precision) < 2;
    if (format.precision == other.precision) return format.stored;
    if (format.stored == StoredFormat::kPrecision) return StoredFormat::kEightFloat;
    const bool four = format.weight_bits == 4;
    return narrow && four ? StoredFormat::kWideFourBit : format.stored;
  }

  std::vector<FormatGroup> groups_;
  std::vector<ModulePattern> ignored_;
  bool experts_only_ = false;
};

std::optional<Precision> kv_cache_of(const json& config) {
  for (const char* key : {"kv_cache_scheme", "kv_cache_quant_algo"})
    if (text_at(config, key) == "FP8") return Precision::kFp8;
  const json* scheme = object_at(config, "kv_cache_scheme");
  if (scheme == nullptr || count_at(*scheme, "num_bits") != 8) return std::nullopt;
  return text_at(*scheme, "type") == "int" ? Precision::kInt8 : Precision::kFp8;
}

/// The object that says how a checkpoint is stored; null where none does.
const json* quantization_of(const json& configuration) {
  const json* config = object_at(configuration, "quantization_config");
  if (config != nullptr) return config;
  const json* inner = language_model(configuration);
  return inner == nullptr ? nullptr : object_at(*inner, "quantization_config");
}

/// Formats that the names of published checkpoints end with.
std::string format_in_name(std::string name) {
  std::transform(name.begin(), name.end(), name.begin(), [](char c) {
    return c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
  });
  for (const char* format :
       {"NVFP4", "MXFP4", "FP8", "FP4", "INT8", "INT4", "AWQ", "GPTQ", "W4A16", "W8A8"})
    if (name.find(format) != std::string::npos) return format;
  return {};
}

}  // namespace

bool has_quantization(const json& configuration) {
  return quantization_of(configuration) != nullptr;
}

bool is_named_quantised(const std::string& name) { return !format_in_name(name).empty(); }

std::optional<Quantization> read_quantization(const json& configuration, LlmConfig& model) {
  const json* config = quantization_of(configuration);
  if (config == nullptr) {
    if (const std::string format = format_in_name(model.name); !format.empty())
      model.asks_precision =
          "its name says " + format + ", but its file has no quantization_config, and no " +
          "hf_quant_config.json lies beside it: it is taken as 16 bits; say 'precision' in the "
          "experiment";
    return std::nullopt;
  }
  std::vector<FormatGroup> groups = format_groups(*config);
  if (groups.empty()) {
    std::string method = text_at(*config, "quant_method");
    if (method.empty()) method = text_at(*config, "quant_algo");
    model.warnings.push_back("quantization_config" + (method.empty() ? "" : " '" + method + "'") +
                             " is not known: the model is taken as if it had none");
    return std::nullopt;
  }
  const StoredParts stored(*config, std::move(groups));
  for (std::size_t i = 0; i < model.layers.size(); ++i) {
    LayerConfig& layer = model.layers[i];
    layer.attention = stored.of(Part::kAttention, model.family, i);
    // Where the family has said it, the file's one format is that of the others.
    if (layer.feed == StoredFormat::kPrecision)
      layer.feed = stored.of(layer.moe ? Part::kExperts : Part::kMlp, model.family, i);
    layer.shared = stored.of(Part::kSharedExperts, model.family, i);
  }
  const bool packed =
      packs_head_too(*config) || (config->contains("lm_head") && config->at("lm_head") == true);
  model.head = stored.of_head(packed);
  Quantization format = stored.main();
  model.scale_bits = format.scale_bits;
  format.name = stored.name();
  format.kv_cache = kv_cache_of(*config);
  return format;
}

}  // namespace orrery
