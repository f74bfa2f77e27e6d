// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "sim/config/registry.h"
#include "workloads/base/limits.h"
#include "workloads/models/fields/field_reader.h"
#include "workloads/models/llm_config.h"

namespace orrery {

/// The largest sizes that a tower may be given beside those of llm_limits; counts stay exact.
namespace tower_limits {
inline constexpr std::int64_t kPatch = 1024;   ///< pixels of a side
inline constexpr std::int64_t kMerge = 64;     ///< patches of a side of a token; ratios of widths
inline constexpr std::int64_t kFrames = 64;    ///< frames of a patch, and channels
inline constexpr std::int64_t kImage = 65536;  ///< pixels of a side
}  // namespace tower_limits

/// What a tower is read from.
struct TowerSource {
  const nlohmann::json& configuration;
  FieldReader& wrapper;    ///< reads all of it
  FieldReader& vision;     ///< the object in it that describes the tower
  const LlmConfig& model;  ///< the language model, which has been read
};

/// Builds one kind of towers. @throws config::ConfigError for what is not modelled
using TowerBuilder = void (*)(TowerSource& source, VisionTower& tower);

/// Builders by the `model_type` of the whole configuration. A kind of towers is one file with such
/// an object at namespace scope: `const RegisterTower kLlama4Vit({"llama4"}, build_llama4_vit);`.
using TowerRegistry = Registry<TowerBuilder>;
using RegisterTower = TowerRegistry::Register;

/// Sizes that a class of the transformers library has for fields that a file leaves out; 0: none.
struct TowerSizes {
  const char* class_name;
  std::int64_t layers = 0, hidden = 0, heads = 0, intermediate = 0;
};
/// Layers, width, heads and the width of MLPs, under the names that towers have for them.
void read_tower_sizes(FieldReader& vision, const TowerSizes& defaults, VisionTower& tower);

/// Two products with a function between them, of which the group shares the columns and the rows,
/// behind the steps `before`.
std::vector<ProjectorStep> projector_mlp(std::int64_t merged, std::int64_t in, std::int64_t middle,
                                         std::int64_t out, bool bias,
                                         std::vector<ProjectorStep> before = {});
/// A product that every rank has whole.
ProjectorStep projector_product(std::int64_t merged, std::int64_t in, std::int64_t out, bool bias);
ProjectorStep projector_norm(std::int64_t merged, std::int64_t width, bool bias,
                             bool weights = true);

/// Pixtral's tower without a projector, which LLaVA and Mistral 3 have too.
void read_pixtral_vit(FieldReader& vision, VisionTower& tower);

/// The tower of a configuration with one, in `model`; where there is none that is modelled, a
/// warning says that it is left out, and why.
void read_vision_tower(const nlohmann::json& configuration, const std::string& origin,
                       LlmConfig& model);

}  // namespace orrery
