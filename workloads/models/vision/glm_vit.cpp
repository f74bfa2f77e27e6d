// SPDX-License-Identifier: Apache-2.0
// GLM-4.1V, 4.5V and 4.6V (arXiv 2507.01006): sizes of an image's own, learned positions that are
// interpolated, rotary ones besides, a convolution of 2 x 2 patches and a gated MLP behind. Names
// and defaults of transformers' configuration_glm4v.py and modeling_glm4v.py; limits of pixels of
// the published preprocessor_config.json, which count the frames that an image is repeated to.
#include "workloads/models/vision/tower_reader.h"

namespace orrery {
namespace {

void build_glm_vit(TowerSource& source, VisionTower& tower) {
  using Kind = ProjectorStep::Kind;
  FieldReader& vision = source.vision;
  tower.name = "GLM-V";
  read_tower_sizes(vision, {"Glm4vVisionConfig", 24, 1536, 12, 13696}, tower);
  tower.patch = vision.size_of_class({"patch_size"}, tower_limits::kPatch, 14);
  tower.merge = vision.size_of_class({"spatial_merge_size"}, tower_limits::kMerge, 2);
  tower.frames = vision.size_of_class({"temporal_patch_size"}, tower_limits::kFrames, 2);
  const std::int64_t side =
      vision.size_of_class({"image_size"}, tower_limits::kImage, 336) / tower.patch;
  tower.position_rows = side * side;
  tower.patch_bias = true;
  tower.norm_before = tower.norm_behind = true;
  tower.norm_bias = tower.mlp_bias = tower.output_bias = false;
  tower.qkv_bias = vision.flag("attention_bias", false);
  tower.gated = true;
  tower.rotary = true;
  tower.rule = {
      .fit = ImageFit::kPixels, .least = 12544 / tower.frames, .most = 9633792 / tower.frames};
  const std::int64_t merged = tower.merge * tower.merge, middle = tower.intermediate;
  const std::int64_t out = vision.size_of_class({"out_hidden_size"}, llm_limits::kHidden, 4096);
  // What the file calls intermediate_size is the width inside of the merger; layers have its
  // output.
  tower.intermediate = out;
  tower.projectors = {
      {"merger",
       {projector_product(merged, merged * tower.hidden, out, true),
        projector_product(merged, out, out, false),
        projector_norm(merged, out, true),
        {Kind::kFunction, merged, out, out},
        {Kind::kProduct, merged, out, 2 * middle, false, true, TowerSplit::kColumns},
        {Kind::kGatedFunction, merged, middle, middle, false, true, TowerSplit::kColumns},
        {Kind::kProduct, merged, middle, out, false, true, TowerSplit::kRows}}}};
}

const RegisterTower kGlmVit({"glm4v", "glm4v_moe"}, build_glm_vit);

}  // namespace
}  // namespace orrery
