// SPDX-License-Identifier: Apache-2.0
// Llama 4's tower: tiles with a class token, four patches put together by a pixel shuffle, an MLP
// and one more matrix. Names and defaults of transformers' Llama4VisionConfig, and
// modeling_llama4.py; at most 16 tiles (preprocessor_config.json: max_patches).
#include "workloads/models/vision/tower_reader.h"

namespace orrery {
namespace {

void build_llama4_vit(TowerSource& source, VisionTower& tower) {
  FieldReader& vision = source.vision;
  tower.name = "Llama 4";
  read_tower_sizes(vision, {"Llama4VisionConfig", 34, 768, 16, 5632}, tower);
  tower.patch = vision.size_of_class({"patch_size"}, tower_limits::kPatch, 14);
  tower.rule = {.fit = ImageFit::kFittingGrid,
                .side = vision.size_of_class({"image_size"}, tower_limits::kImage, 448),
                .most = 16};
  if (vision.fraction_or({"pixel_shuffle_ratio"}, 0.5) != 0.5)
    vision.unsupported("another pixel_shuffle_ratio than 0.5 is not modelled");
  const std::int64_t side = tower.rule.side / tower.patch;
  if (side < 2) vision.invalid("patch_size", "wider than half an image");
  tower.merge = 2;
  tower.class_tokens = 1;
  tower.position_rows = side * side + 1;
  tower.norm_before = tower.norm_behind = true;
  tower.rotary = true;
  const std::int64_t merged = 4 * tower.hidden;
  if (tower.intermediate != merged)
    vision.unsupported("an intermediate_size other than four times the width is not modelled");
  const std::int64_t middle =
      vision.size_of_class({"projector_input_dim"}, llm_limits::kHidden, 4096);
  const std::int64_t out =
      vision.size_of_class({"projector_output_dim"}, llm_limits::kHidden, 4096);
  Projector projector{"projector", projector_mlp(4, merged, middle, out, false)};
  projector.steps.push_back(projector_product(4, out, source.model.hidden, false));
  tower.projectors = {std::move(projector)};
}

const RegisterTower kLlama4Vit({"llama4"}, build_llama4_vit);

}  // namespace
}  // namespace orrery
