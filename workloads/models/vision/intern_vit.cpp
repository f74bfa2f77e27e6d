// SPDX-License-Identifier: Apache-2.0
// InternViT (InternVL 2, 2.5 and 3; arXiv 2412.05271): tiles in the grid nearest to the shape of an
// image, a class token, layers whose halves are scaled by vectors, four patches put together by a
// pixel shuffle. Names of OpenGVLab's configuration_intern_vit.py and modeling_internvl_chat.py.
#include "workloads/models/vision/tower_reader.h"

namespace orrery {
namespace {

void build_intern_vit(TowerSource& source, VisionTower& tower) {
  FieldReader& vision = source.vision;
  FieldReader& wrapper = source.wrapper;
  tower.name = "InternViT";
  read_tower_sizes(vision, {"InternVisionConfig"}, tower);
  tower.patch = vision.size_of_class({"patch_size"}, tower_limits::kPatch, 14);
  tower.patch_bias = true;
  tower.rule = {.fit = ImageFit::kNearestGrid,
                .side = vision.size({"image_size"}, tower_limits::kImage),
                .least = wrapper.size_or({"min_dynamic_patch"}, tower_limits::kPatch, 1),
                .most = wrapper.size_or({"max_dynamic_patch"}, tower_limits::kPatch, 12)};
  if (tower.rule.least > tower.rule.most)
    wrapper.invalid("min_dynamic_patch", "more than max_dynamic_patch");
  if (!wrapper.flag("dynamic_image_size", true))
    tower.rule = {.fit = ImageFit::kSquare, .side = tower.rule.side};
  else if (!wrapper.flag("use_thumbnail", true))
    wrapper.unsupported("tiles without one of the whole image are not modelled");
  if (wrapper.fraction_or({"downsample_ratio"}, 0.5) != 0.5)
    wrapper.unsupported("another downsample_ratio than 0.5 is not modelled");
  const std::int64_t side = tower.rule.side / tower.patch;
  if (side < 2) vision.invalid("patch_size", "wider than half an image");
  tower.merge = 2;
  tower.class_tokens = 1;
  tower.position_rows = side * side + 1;
  tower.qkv_bias = vision.flag("qkv_bias", false);
  tower.norm_bias = vision.text_or({"norm_type"}, "rms_norm") == "layer_norm";
  if (vision.flag("qk_normalization", true)) tower.qk_norm = tower.width();
  tower.layer_scales = true;
  const std::int64_t merged = 4 * tower.hidden, hidden = source.model.hidden;
  tower.projectors = {{"projector", projector_mlp(4, merged, hidden, hidden, true,
                                                  {projector_norm(4, merged, true)})}};
}

const RegisterTower kInternVit({"internvl_chat"}, build_intern_vit);

}  // namespace
}  // namespace orrery
