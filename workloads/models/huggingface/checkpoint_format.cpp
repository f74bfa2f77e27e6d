// SPDX-License-Identifier: Apache-2.0
#include "workloads/models/huggingface/checkpoint_format.h"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <utility>

#include "sim/units/comma_separated.h"
#include "workloads/models/fields/json_fields.h"

namespace orrery {
namespace {

using nlohmann::json;
using namespace json_fields;

/// One format of a checkpoint and what it is of.
struct FormatGroup {
  Quantization format;
  bool all_matrices = true;            ///< holds every matrix that no other group names
  std::vector<ModulePattern> modules;  ///< else these
  std::vector<std::string> listed;     ///< and modules by their whole names, sorted

  bool names(const std::string& module) const {
    const auto named = [&module](const ModulePattern& pattern) { return pattern.names(module); };
    if (std::ranges::any_of(modules, named)) return true;
    for (std::size_t end = module.size(); end != std::string::npos && end > 0;
         end = module.rfind('.', end - 1))
      if (std::ranges::binary_search(listed, module.substr(0, end))) return true;
    return false;
  }
};

/// Whether a quantization_config is MLX's, which has bits and a group alone: scales and offsets of
/// 16 bits, in the embedding and the head too (mlx_lm, utils.py: quantize_model).
bool packs_head_too(const json& config) {
  const bool named = !text_at(config, "quant_method").empty() ||
                     !text_at(config, "quant_algo").empty() || config.contains("config_groups");
  return !named && count_at(config, "bits") > 0 && count_at(config, "group_size") > 0;
}

/// Weights of which `group` share `shared` bits of scales and zero points; group 0: all of a row.
Quantization widened(std::int64_t bits, std::int64_t group, std::int64_t shared) {
  Quantization q;
  q.weight_bits = bits;
  if (group > 0) q.scale_bits = static_cast<double>(shared) / static_cast<double>(group);
  q.name = std::to_string(bits) + "-bit weights";
  if (group > 0) q.name += " in groups of " + std::to_string(group);
  q.stored = bits == 8 ? StoredFormat::kEightBit : StoredFormat::kFourBit;
  return q;
}

/// OCP Microscaling Formats 1.0: one scale of 8 bits for 32 weights of 4.
Quantization microscaled() {
  Quantization q = widened(4, 32, 8);
  q.stored = StoredFormat::kMxFourBit;
  return q;
}

constexpr std::int64_t kScale = 16;  // bits of a scale of integers
constexpr std::int64_t kNvfp4Group = 16, kNvfp4Scale = 8;

Quantization narrow(Precision precision) {
  Quantization q;
  q.precision = precision;
  if (precision == Precision::kNvfp4) q.scale_bits = 1.0 * kNvfp4Scale / kNvfp4Group;
  q.name = to_string(precision);
  return q;
}

/// A group of compressed-tensors or ModelOpt: weights, and input activations where these are
/// quantised too.
std::optional<Quantization> group_format(const json& group, const std::string& whole) {
  const json* weights = object_at(group, "weights");
  if (weights == nullptr) return std::nullopt;
  const std::string packed = text_at(group, "format").empty() ? whole : text_at(group, "format");
  const bool inputs = object_at(group, "input_activations") != nullptr;
  const bool floats = text_at(*weights, "type") != "int";
  const std::int64_t bits = count_at(*weights, "num_bits");
  const std::int64_t size = count_at(*weights, "group_size");
  if (packed.find("mxfp4") != std::string::npos) return microscaled();
  if (bits == 8 && inputs && floats)
    return narrow(text_at(*weights, "strategy") == "block" ? Precision::kFp8Block
                                                           : Precision::kFp8);
  if (bits == 8 && inputs) return narrow(Precision::kInt8);
  if (bits == 4 && inputs && floats && (size == kNvfp4Group || size == 0))
    return narrow(Precision::kNvfp4);
  if (bits != 4 && bits != 8) return std::nullopt;
  const bool nvfp4 = bits == 4 && floats && size == kNvfp4Group;
  const bool zeros = weights->contains("symmetric") && weights->at("symmetric") == false;
  return widened(bits, size, nvfp4 ? kNvfp4Scale : kScale + (zeros ? bits : 0));
}

bool has(const std::string& text, const char* part) { return text.find(part) != std::string::npos; }

/// What ModelOpt calls an algorithm (modelopt/torch/export/quant_utils.py): weights of so many
/// bits ("W4A16": widened), or the format of weights and inputs.
std::optional<Quantization> algorithm_format(const json& config) {
  const std::string name = text_at(config, "quant_algo");
  const std::int64_t group = count_at(config, "group_size");
  if (has(name, "MXFP4")) return microscaled();
  if (has(name, "W4A16_NVFP4")) return widened(4, kNvfp4Group, kNvfp4Scale);
  if (has(name, "W4A16") || name == "INT4_AWQ") return widened(4, group, kScale);
  if (has(name, "W8A16")) return widened(8, group, kScale);
  if (has(name, "W4A8")) return std::nullopt;
  if (has(name, "NVFP4")) return narrow(Precision::kNvfp4);
  if (has(name, "FP8_PB") || has(name, "FP8_BLOCK")) return narrow(Precision::kFp8Block);
  if (name.rfind("FP8", 0) == 0) return narrow(Precision::kFp8);
  if (has(name, "W8A8") || has(name, "INT8")) return narrow(Precision::kInt8);
  return std::nullopt;
}

/// Format of all matrices but those of modules that are left out.
std::optional<Quantization> method_format(const json& config) {
  const std::string method = text_at(config, "quant_method");
  if (packs_head_too(config)) {
    const std::int64_t bits = count_at(config, "bits");
    if (bits == 4 || bits == 8) return widened(bits, count_at(config, "group_size"), 2 * kScale);
  }
  if (method == "fp8" || method == "fbgemm_fp8") {
    const bool blocks =
        config.contains("weight_block_size") && config.at("weight_block_size").is_array();
    return narrow(blocks ? Precision::kFp8Block : Precision::kFp8);
  }
  if (method == "mxfp4") return microscaled();
  if (method == "awq" || method == "gptq" || method == "gptq_marlin") {
    const std::int64_t bits = count_at(config, config.contains("bits") ? "bits" : "w_bit");
    // Scales, and zero points in the width of weights (AutoGPTQ and AutoAWQ: scales, qzeros).
    if (bits == 4 || bits == 8)
      return widened(bits, std::max<std::int64_t>(0, count_at(config, "group_size")),
                     kScale + bits);
  }
  return algorithm_format(config);
}

/// Targets name classes ("Linear": all matrices but the head) or modules.
void take_targets(const json& group, FormatGroup& into) {
  std::vector<std::string> targets = texts_at(group, "targets");
  const auto is_class = [](const std::string& name) {
    return name != "lm_head" && name.rfind("re:", 0) != 0 && name.find('.') == std::string::npos &&
           name.find('*') == std::string::npos;
  };
  into.all_matrices = targets.empty() || std::ranges::any_of(targets, is_class);
  for (std::string& name : targets) {
    if (is_class(name)) continue;
    const bool pattern = name.rfind("re:", 0) == 0 || name.find('*') != std::string::npos;
    if (pattern)
      into.modules.emplace_back(std::move(name));
    else
      into.listed.push_back(std::move(name));
  }
  std::ranges::sort(into.listed);
}

/// `quantized_layers` of ModelOpt's mixed precision: modules by name, each with its algorithm.
std::vector<FormatGroup> layer_groups(const json& layers) {
  std::map<std::string, FormatGroup> by_name;
  for (const auto& [module, config] : layers.items()) {
    const auto format = config.is_object() ? algorithm_format(config) : std::nullopt;
    if (!format) continue;  // "UNQUANTIZED": in no group
    FormatGroup& group =
        by_name.try_emplace(format->name, FormatGroup{*format, false, {}, {}}).first->second;
    group.listed.push_back(module);
  }
  std::vector<FormatGroup> groups;
  groups.reserve(by_name.size());
  for (auto& [name, group] : by_name) {
    std::ranges::sort(group.listed);
    groups.push_back(std::move(group));
  }
  return groups;
}

/// What a quantization_config says, or the `quantization` of ModelOpt's hf_quant_config.json: one
/// group where all modules are stored alike. Empty where a format is not known.
std::vector<FormatGroup> format_groups(const json& config) {
  if (const json* layers = object_at(config, "quantized_layers"); layers && !layers->empty())
    return layer_groups(*layers);
  std::vector<FormatGroup> groups;
  if (const json* listed = object_at(config, "config_groups")) {
    for (const json& group : *listed) {
      const auto format =
          group.is_object() ? group_format(group, text_at(config, "format")) : std::nullopt;
      if (!format) return {};
      groups.push_back({*format, true, {}, {}});
      take_targets(group, groups.back());
    }
    return groups;
  }
  if (const auto format = method_format(config)) groups.push_back({*format, true, {}, {}});
  return groups;
}

/// Parts of a layer that a checkpoint quantises, or leaves out, together.
enum class ModelPart : std::uint8_t { kAttention, kMlp, kExperts, kSharedExperts };
using PartNames = std::array<std::vector<std::string>, 4>;

/// Names under which published models have the last matrix of a part of a layer. The dense MLP that
/// Gemma 4 has beside its experts is called what others call the layer without experts.
const std::vector<std::string>& modules_of(ModelPart part, const std::string& family) {
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
std::vector<std::string> names_of(ModelPart part, const std::string& family, std::size_t layer) {
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
    const auto order = [](const FormatGroup& group) {
      return std::pair(element_bytes(group.format.precision), !group.all_matrices);
    };
    return std::ranges::min_element(groups_, {}, order)->format;
  }

  std::string name() const {
    return comma_joined(groups_, [](const FormatGroup& group) { return group.format.name; });
  }

  /// The head is in a format only where somebody says so of it: GPTQ's `lm_head`, or a module that
  /// a group names. "Linear" is none of it, as engines read such files (vLLM's LinearBase).
  StoredFormat of_head(bool packed) const {
    const auto is = [](const auto& named) { return std::ranges::any_of(kHeads, named); };
    for (const ModulePattern& pattern : ignored_)
      if (is([&](const char* head) { return pattern.names(head); }))
        return StoredFormat::kSixteenBit;
    for (const FormatGroup& group : groups_)
      if (is([&](const char* head) { return group.names(head); })) return beside_main(group.format);
    return packed ? beside_main(main()) : StoredFormat::kSixteenBit;
  }

  StoredFormat of(ModelPart part, const std::string& family, std::size_t layer) const {
    // The plain method mxfp4 packs matrices of experts alone.
    if (experts_only_ && part != ModelPart::kExperts) return StoredFormat::kSixteenBit;
    const std::vector<std::string> names = names_of(part, family, layer);
    const auto any = [&names](const auto& named) { return std::ranges::any_of(names, named); };
    const auto is_ignored = [this](const std::string& name) {
      return std::ranges::any_of(ignored_,
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
    layer.attention = stored.of(ModelPart::kAttention, model.family, i);
    // Where the family has said it, the file's one format is that of the others.
    if (layer.feed == StoredFormat::kPrecision)
      layer.feed = stored.of(layer.moe ? ModelPart::kExperts : ModelPart::kMlp, model.family, i);
    layer.shared = stored.of(ModelPart::kSharedExperts, model.family, i);
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
