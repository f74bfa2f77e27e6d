// SPDX-License-Identifier: Apache-2.0
#include "workloads/llm/checkpoint_format.h"

#include <algorithm>
#include <array>
#include <initializer_list>
#include <nlohmann/json.hpp>
#include <string_view>
#include <utility>

namespace orrery {
namespace {

using nlohmann::json;

/// The object at a key, or null.
const json* object_at(const json& object, const char* key) {
  const auto found = object.find(key);
  return found != object.end() && found->is_object() ? &*found : nullptr;
}

const json* inner_model(const json& configuration) {
  for (const char* key : {"text_config", "llm_config", "language_config"})
    if (const json* inner = object_at(configuration, key)) return inner;
  return nullptr;
}

std::string text_at(const json& object, const char* key) {
  const auto found = object.find(key);
  return found != object.end() && found->is_string() ? found->get<std::string>() : std::string();
}

/// A count, or 0 where there is none; what is not a sensible one is none.
std::int64_t count_at(const json& object, const char* key) {
  constexpr double kLargest = 1e9;
  const auto found = object.find(key);
  if (found == object.end() || !found->is_number()) return 0;
  const double value = found->get<double>();
  return value >= 1 && value <= kLargest ? static_cast<std::int64_t>(value) : 0;
}

std::int64_t first_count(const json& object, std::initializer_list<const char*> keys) {
  for (const char* key : keys)
    if (const std::int64_t count = count_at(object, key); count > 0) return count;
  return 0;
}

std::vector<std::string> texts_at(const json& object, const char* key) {
  std::vector<std::string> texts;
  const auto found = object.find(key);
  if (found == object.end() || !found->is_array()) return texts;
  for (const json& item : *found)
    if (item.is_string()) texts.push_back(item.get<std::string>());
  return texts;
}

/// '*' stands for any text.
bool matches_glob(const std::string& pattern, const std::string& text) {
  std::size_t p = 0, t = 0, star = std::string::npos, from = 0;
  while (t < text.size()) {
    if (p < pattern.size() && pattern[p] != '*' && (pattern[p] == text[t] || pattern[p] == '?')) {
      ++p;
      ++t;
    } else if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      from = t;
    } else if (star != std::string::npos) {
      p = star + 1;
      t = ++from;
    } else {
      return false;
    }
  }
  while (p < pattern.size() && pattern[p] == '*') ++p;
  return p == pattern.size();
}

/// Parts of a layer that a checkpoint quantises, or leaves out, together.
enum class Part : std::uint8_t { kAttention, kMlp, kExperts, kSharedExperts };

/// Names under which published models have the last matrix of a part of a layer.
const std::vector<std::string>& modules_of(Part part) {
  static const std::array<std::vector<std::string>, 4> names = {
      std::vector<std::string>{"self_attn.o_proj", "mixer.o_proj", "mixer.out_proj",
                               "linear_attn.out_proj"},
      {"mlp.down_proj", "mixer.down_proj"},
      {"mlp.experts.0.down_proj", "mlp.experts.down_proj", "block_sparse_moe.experts.0.w2",
       "mixer.experts.0.down_proj"},
      {"mlp.shared_experts.down_proj", "mlp.shared_expert.down_proj",
       "mixer.shared_experts.down_proj"}};
  return names[static_cast<std::size_t>(part)];
}

bool is_named(const std::vector<ModulePattern>& patterns, const std::string& module) {
  return std::any_of(patterns.begin(), patterns.end(),
                     [&](const ModulePattern& pattern) { return pattern.names(module); });
}

/// Whether the list of what is left out has a part of a layer, under any of its names.
bool is_left_out(const std::vector<ModulePattern>& ignored, Part part, std::size_t layer) {
  const std::vector<std::string>& modules = modules_of(part);
  return std::any_of(modules.begin(), modules.end(), [&](const std::string& module) {
    for (const char* prefix :
         {"model.", "language_model.model.", "model.language_model.", "backbone."}) {
      std::string name = prefix;
      name.append("layers.").append(std::to_string(layer)).append(".").append(module);
      if (is_named(ignored, name)) return true;
    }
    return false;
  });
}

Quantization widened(std::int64_t bits, std::int64_t group) {
  Quantization q;
  q.weight_bits = bits;
  q.name = std::to_string(bits) + "-bit weights";
  if (group > 0) q.name += " in groups of " + std::to_string(group);
  return q;
}

Quantization narrow(Precision precision) {
  Quantization q;
  q.precision = precision;
  q.name = to_string(precision);
  return q;
}

/// A group of compressed-tensors or ModelOpt: weights, and input activations where these are
/// quantised too.
std::optional<Quantization> group_format(const json& group) {
  const json* weights = object_at(group, "weights");
  if (weights == nullptr) return std::nullopt;
  const bool inputs = object_at(group, "input_activations") != nullptr;
  const bool floats = text_at(*weights, "type") != "int";
  const std::int64_t bits = count_at(*weights, "num_bits");
  const std::int64_t size = count_at(*weights, "group_size");
  constexpr std::int64_t kNvfp4Group = 16;
  if (bits == 8 && inputs && floats)
    return narrow(text_at(*weights, "strategy") == "block" ? Precision::kFp8Block
                                                           : Precision::kFp8);
  if (bits == 8 && inputs) return narrow(Precision::kInt8);
  if (bits == 4 && inputs && floats && (size == kNvfp4Group || size == 0))
    return narrow(Precision::kNvfp4);
  if (bits == 4 || bits == 8) return widened(bits, size);
  return std::nullopt;
}

/// Without the modules that are left out.
std::optional<Quantization> format_of(const json& config) {
  constexpr std::int64_t kMxGroup = 32;  // OCP Microscaling Formats 1.0: one scale of 8 bits
  const std::string method = text_at(config, "quant_method");
  if (const json* groups = object_at(config, "config_groups")) {
    if (groups->size() != 1 || !groups->begin()->is_object()) return std::nullopt;
    return group_format(*groups->begin());
  }
  if (method == "fp8" || method == "fbgemm_fp8") {
    const bool blocks =
        config.contains("weight_block_size") && config.at("weight_block_size").is_array();
    return narrow(blocks ? Precision::kFp8Block : Precision::kFp8);
  }
  if (method == "mxfp4") return widened(4, kMxGroup);
  if (method == "awq" || method == "gptq") {
    const std::int64_t bits = count_at(config, "bits");
    if (bits == 4 || bits == 8) return widened(bits, count_at(config, "group_size"));
  }
  return std::nullopt;
}

std::optional<Precision> kv_cache_of(const json& config) {
  if (text_at(config, "kv_cache_scheme") == "FP8") return Precision::kFp8;
  const json* scheme = object_at(config, "kv_cache_scheme");
  if (scheme == nullptr || count_at(*scheme, "num_bits") != 8) return std::nullopt;
  return text_at(*scheme, "type") == "int" ? Precision::kInt8 : Precision::kFp8;
}

}  // namespace

ModulePattern::ModulePattern(std::string text) : text_(std::move(text)) {
  constexpr std::string_view kRegex = "re:";
  constexpr std::size_t kLongest = 200;  // std::regex recurses by length
  if (text_.rfind(kRegex, 0) != 0) {
    kind_ = text_.find('*') == std::string::npos ? Kind::kWords : Kind::kGlob;
    return;
  }
  try {
    if (text_.size() <= kLongest) {
      regex_ = std::regex(text_.substr(kRegex.size()));
      kind_ = Kind::kRegex;
    }
  } catch (const std::regex_error&) {
    kind_ = Kind::kWords;  // which "re:" is in no name
  }
}

bool ModulePattern::names(const std::string& module) const {
  if (kind_ == Kind::kRegex)
    return std::regex_search(module, regex_, std::regex_constants::match_continuous);
  if (kind_ == Kind::kWords) {
    return !text_.empty() && ("." + module + ".").find("." + text_ + ".") != std::string::npos;
  }
  for (std::size_t end = module.find('.'); end != std::string::npos;
       end = module.find('.', end + 1)) {
    if (matches_glob(text_, module.substr(0, end))) return true;
  }
  return matches_glob(text_, module);
}

std::optional<Quantization> read_quantization(const json& configuration, LlmConfig& model) {
  const json* config = object_at(configuration, "quantization_config");
  const json* inner = inner_model(configuration);
  if (config == nullptr && inner != nullptr) config = object_at(*inner, "quantization_config");
  if (config == nullptr) return std::nullopt;
  std::optional<Quantization> format = format_of(*config);
  const std::string method = text_at(*config, "quant_method");
  if (!format) {
    model.warnings.push_back("quantization_config" + (method.empty() ? "" : " '" + method + "'") +
                             " is not known: the model is taken as if it had none");
    return std::nullopt;
  }
  std::vector<ModulePattern> ignored;
  for (const char* key : {"ignore", "modules_to_not_convert", "ignored_layers"})
    for (std::string& pattern : texts_at(*config, key)) ignored.emplace_back(std::move(pattern));
  const StoredFormat stored = method == "mxfp4"          ? StoredFormat::kMxFourBit
                              : format->weight_bits == 4 ? StoredFormat::kFourBit
                              : format->weight_bits == 8 ? StoredFormat::kEightBit
                                                         : StoredFormat::kPrecision;
  // The plain method mxfp4 packs matrices of experts alone.
  const bool experts_only = method == "mxfp4";
  for (std::size_t i = 0; i < model.layers.size(); ++i) {
    const auto format_in = [&](Part part) {
      const bool out = (experts_only && part != Part::kExperts) || is_left_out(ignored, part, i);
      return out ? StoredFormat::kSixteenBit : stored;
    };
    LayerConfig& layer = model.layers[i];
    layer.attention = format_in(Part::kAttention);
    // Where the family has said it, the file's one format is that of the others.
    if (layer.feed == StoredFormat::kPrecision)
      layer.feed = format_in(layer.moe ? Part::kExperts : Part::kMlp);
    layer.shared = format_in(Part::kSharedExperts);
  }
  format->kv_cache = kv_cache_of(*config);
  return format;
}

std::int64_t vision_parameters(const json& configuration) {
  for (const char* key : {"vision_config", "visual"}) {
    const json* vision = object_at(configuration, key);
    if (vision == nullptr) continue;
    const std::int64_t width =
        first_count(*vision, {"vt_hidden_size", "hidden_size", "embed_dim", "width"});
    const std::int64_t depth =
        first_count(*vision, {"vt_num_hidden_layers", "num_hidden_layers", "depth", "layers"});
    const std::int64_t mlp = first_count(*vision, {"vt_intermediate_size", "intermediate_size"});
    if (width > 0 && depth > 0 && width < 100'000 && depth < 10'000 && mlp < 1'000'000)
      return depth * (4 * width * width + 2 * width * (mlp > 0 ? mlp : 4 * width));
  }
  return 0;
}

}  // namespace orrery
