// SPDX-License-Identifier: Apache-2.0
#include "workloads/models/vision/tower_reader.h"

#include <fmt/core.h>

#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "workloads/models/fields/json_fields.h"

namespace orrery {
namespace {

using nlohmann::json;

/// The key of the object that describes a tower; null where there is none.
const char* tower_key(const json& configuration) {
  for (const char* key : {"vision_config", "visual", "img_processor", "vision_encoder_config"})
    if (json_fields::object_at(configuration, key) != nullptr) return key;
  return nullptr;
}

std::int64_t first_count(const json& object, std::initializer_list<const char*> keys) {
  for (const char* key : keys)
    if (const std::int64_t count = json_fields::count_at(object, key); count > 0) return count;
  return 0;
}

/// Parameters of layers, from width, depth and MLP alone; 0 where the object does not say.
std::int64_t rough_parameters(const json& vision) {
  const std::int64_t width =
      first_count(vision, {"hidden_size", "vt_hidden_size", "embed_dim", "width"});
  const std::int64_t depth =
      first_count(vision, {"num_hidden_layers", "vt_num_hidden_layers", "depth", "layers"});
  const std::int64_t mlp = first_count(vision, {"intermediate_size", "vt_intermediate_size"});
  if (width == 0 || depth == 0 || width > 100'000 || depth > 10'000 || mlp > 1'000'000) return 0;
  return depth * (4 * width * width + 2 * width * (mlp > 0 ? mlp : 4 * width));
}

void leave_out(LlmConfig& model, const std::string& why, std::int64_t parameters = 0) {
  std::string text = "vision tower left out: the language model alone is modelled; " + why;
  if (parameters > 0)
    text += fmt::format("; about {} M parameters by its width and depth",
                        (parameters + 500'000) / 1'000'000);
  model.warnings.push_back(std::move(text));
}

VisionTower built(const json& configuration, const std::string& origin, const char* key,
                  TowerBuilder build, LlmConfig& model) {
  FieldReader wrapper(configuration, origin, nullptr);
  std::optional<FieldReader> vision = wrapper.section(key);
  if (!vision) wrapper.invalid(key, "empty");
  VisionTower tower;
  TowerSource source{configuration, wrapper, *vision, model};
  build(source, tower);
  if (tower.layers_run == 0) tower.layers_run = tower.layers;
  for (const FieldReader* reader : {&*vision, &wrapper})
    if (const std::string given = reader->class_defaults(); !given.empty())
      model.warnings.push_back(fmt::format("{}: {}", key, given));
  return tower;
}

}  // namespace

void read_tower_sizes(FieldReader& vision, const TowerSizes& defaults, VisionTower& tower) {
  vision.defaults_are_of(defaults.class_name);
  const auto read = [&vision](FieldReader::Names names, std::int64_t limit, std::int64_t fallback) {
    return fallback > 0 ? vision.size_of_class(names, limit, fallback) : vision.size(names, limit);
  };
  tower.layers = read({"num_hidden_layers", "depth", "vt_num_hidden_layers"}, llm_limits::kLayers,
                      defaults.layers);
  tower.hidden = read({"hidden_size", "vt_hidden_size"}, llm_limits::kHidden, defaults.hidden);
  tower.heads = read({"num_attention_heads", "num_heads", "vt_num_attention_heads"},
                     llm_limits::kHeads, defaults.heads);
  tower.intermediate = read({"intermediate_size", "vt_intermediate_size"},
                            llm_limits::kIntermediate, defaults.intermediate);
  const std::int64_t width = vision.size_or({"qkv_hidden_size"}, llm_limits::kHidden, tower.hidden);
  if (!vision.has("head_dim"))
    vision.require_divides_width("num_attention_heads", tower.heads, width);
  tower.head_dim = vision.size_or({"head_dim"}, llm_limits::kHeadDim, width / tower.heads);
}

std::vector<ProjectorStep> projector_mlp(std::int64_t merged, std::int64_t in, std::int64_t middle,
                                         std::int64_t out, bool bias,
                                         std::vector<ProjectorStep> before) {
  using Kind = ProjectorStep::Kind;
  before.push_back({Kind::kProduct, merged, in, middle, bias, true, TowerSplit::kColumns});
  before.push_back({Kind::kFunction, merged, middle, middle, false, true, TowerSplit::kColumns});
  before.push_back({Kind::kProduct, merged, middle, out, bias, true, TowerSplit::kRows});
  return before;
}

ProjectorStep projector_product(std::int64_t merged, std::int64_t in, std::int64_t out, bool bias) {
  return {ProjectorStep::Kind::kProduct, merged, in, out, bias, true, TowerSplit::kWhole};
}

ProjectorStep projector_norm(std::int64_t merged, std::int64_t width, bool bias, bool weights) {
  return {ProjectorStep::Kind::kNorm, merged, width, width, bias, weights, TowerSplit::kWhole};
}

void read_vision_tower(const json& configuration, const std::string& origin, LlmConfig& model) {
  const char* key = tower_key(configuration);
  const std::string type = json_fields::text_at(configuration, "model_type");
  const TowerBuilder* known = TowerRegistry::find(type);
  if (key == nullptr) {
    if (json_fields::language_model(configuration) != nullptr)
      leave_out(model, "the file does not describe the tower");
    return;
  }
  if (known == nullptr) {
    leave_out(model, "towers of model_type '" + type + "' are not modelled",
              rough_parameters(configuration.at(key)));
    return;
  }
  try {
    model.vision = built(configuration, origin, key, *known, model);
  } catch (const config::ConfigError& error) {
    leave_out(model, error.what(), rough_parameters(configuration.at(key)));
  }
}

}  // namespace orrery
