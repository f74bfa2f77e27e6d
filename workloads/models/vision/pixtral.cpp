// SPDX-License-Identifier: Apache-2.0
// Pixtral's tower (arXiv 2410.07073): sizes of an image's own, 2D rotary positions, no biases, a
// token behind each row. Mistral Small 3.1 and later merge 2 x 2 patches. Names and defaults of
// transformers' configuration_pixtral.py and modeling_mistral3.py.
#include "workloads/models/vision/tower_reader.h"

namespace orrery {
namespace {

void build_mistral3_vision(TowerSource& source, VisionTower& tower) {
  read_pixtral_vit(source.vision, tower);
  tower.merge = source.wrapper.size_of_class({"spatial_merge_size"}, tower_limits::kMerge, 2);
  const std::int64_t merged = tower.merge * tower.merge, hidden = source.model.hidden;
  const bool bias = source.wrapper.flag("multimodal_projector_bias", false);
  tower.projectors = {{"projector", projector_mlp(merged, tower.hidden, hidden, hidden, bias,
                                                  {projector_norm(1, tower.hidden, false),
                                                   projector_product(merged, merged * tower.hidden,
                                                                     tower.hidden, false)})}};
}

const RegisterTower kMistral3Tower({"mistral3"}, build_mistral3_vision);

}  // namespace

void read_pixtral_vit(FieldReader& vision, VisionTower& tower) {
  tower.name = "Pixtral";
  read_tower_sizes(vision, {"PixtralVisionConfig", 24, 1024, 16, 4096}, tower);
  tower.patch = vision.size_of_class({"patch_size"}, tower_limits::kPatch, 16);
  tower.rule.fit = ImageFit::kLongestSide;
  tower.rule.longest = vision.size_of_class({"image_size"}, tower_limits::kImage, 1024);
  tower.rule.row_tokens = true;
  tower.rotary = true;
  tower.norm_before = true;
  tower.norm_bias = tower.mlp_bias = tower.qkv_bias = tower.output_bias = false;
  tower.gated = true;
}

}  // namespace orrery
