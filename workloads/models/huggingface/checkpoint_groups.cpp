// SPDX-License-Identifier: Apache-2.0
#include "workloads/models/huggingface/checkpoint_groups.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "workloads/models/fields/json_fields.h"

namespace orrery {
namespace {

using nlohmann::json;
using namespace json_fields;

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
  into.all_matrices = targets.empty() || std::any_of(targets.begin(), targets.end(), is_class);
  for (std::string& name : targets) {
    if (is_class(name)) continue;
    const bool pattern = name.rfind("re:", 0) == 0 || name.find('*') != std::string::npos;
    if (pattern)
      into.modules.emplace_back(std::move(name));
    else
      into.listed.push_back(std::move(name));
  }
  std::sort(into.listed.begin(), into.listed.end());
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
    std::sort(group.listed.begin(), group.listed.end());
    groups.push_back(std::move(group));
  }
  return groups;
}

}  // namespace

bool packs_head_too(const json& config) {
  const bool named = !text_at(config, "quant_method").empty() ||
                     !text_at(config, "quant_algo").empty() || config.contains("config_groups");
  return !named && count_at(config, "bits") > 0 && count_at(config, "group_size") > 0;
}

bool FormatGroup::names(const std::string& module) const {
  const auto named = [&module](const ModulePattern& pattern) { return pattern.names(module); };
  if (std::any_of(modules.begin(), modules.end(), named)) return true;
  for (std::size_t end = module.size(); end != std::string::npos && end > 0;
       end = module.rfind('.', end - 1))
    if (std::binary_search(listed.begin(), listed.end(), module.substr(0, end))) return true;
  return false;
}

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

}  // namespace orrery
