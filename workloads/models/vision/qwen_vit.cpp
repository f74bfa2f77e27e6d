// SPDX-License-Identifier: Apache-2.0
// Towers of Qwen2-VL (arXiv 2409.12191), Qwen2.5-VL (2502.13923), Qwen3-VL and Qwen3.5: sizes of an
// image's own, 2D rotary positions, patches merged 2 x 2. Names and defaults of transformers'
// configuration_qwen2_vl.py, _qwen2_5_vl.py and _qwen3_vl.py, limits of pixels of the published
// preprocessor_config.json.
#include "workloads/models/vision/tower_reader.h"

namespace orrery {
namespace {

void read_qwen_patches(FieldReader& vision, std::int64_t patch, VisionTower& tower) {
  tower.patch = vision.size_of_class({"patch_size"}, tower_limits::kPatch, patch);
  tower.merge = vision.size_of_class({"spatial_merge_size"}, tower_limits::kMerge, 2);
  tower.frames = vision.size_of_class({"temporal_patch_size"}, tower_limits::kFrames, 2);
  tower.channels = vision.size_or({"in_channels", "in_chans"}, tower_limits::kFrames, 3);
  tower.rotary = true;
}

/// A norm of patches, then two products on merged ones.
Projector qwen_merger(const VisionTower& tower, bool norm_bias, std::int64_t out) {
  const std::int64_t merged = tower.merge * tower.merge, width = merged * tower.hidden;
  return {"merger", projector_mlp(merged, width, width, out, true,
                                  {projector_norm(1, tower.hidden, norm_bias)})};
}

/// A file's `hidden_size` is the width behind the merger.
void build_qwen2_vit(TowerSource& source, VisionTower& tower) {
  FieldReader& vision = source.vision;
  vision.defaults_are_of("Qwen2VLVisionConfig");
  tower.name = "Qwen2-VL";
  tower.layers = vision.size_of_class({"depth"}, llm_limits::kLayers, 32);
  tower.hidden = vision.size_of_class({"embed_dim"}, llm_limits::kHidden, 1280);
  tower.heads = vision.size_of_class({"num_heads"}, llm_limits::kHeads, 16);
  if (tower.hidden % tower.heads != 0) vision.invalid("num_heads", "does not divide embed_dim");
  tower.head_dim = tower.hidden / tower.heads;
  tower.intermediate = tower.hidden * vision.size_of_class({"mlp_ratio"}, tower_limits::kMerge, 4);
  read_qwen_patches(vision, 14, tower);
  tower.rule = {.fit = ImageFit::kPixels, .least = 3136, .most = 12845056};
  const std::int64_t out =
      vision.size_or({"hidden_size"}, llm_limits::kHidden, source.model.hidden);
  tower.projectors = {qwen_merger(tower, true, out)};
}

/// Most layers attend within windows.
void build_qwen2_5_vit(TowerSource& source, VisionTower& tower) {
  FieldReader& vision = source.vision;
  read_tower_sizes(vision, {"Qwen2_5_VLVisionConfig", 32, 3584, 16, 3420}, tower);
  tower.name = "Qwen2.5-VL";
  tower.norm_bias = false;
  tower.gated = true;
  read_qwen_patches(vision, 14, tower);
  tower.window = vision.size_of_class({"window_size"}, llm_limits::kTokens, 112) / tower.patch;
  tower.whole_layers = vision.counts_or_empty("fullatt_block_indexes", llm_limits::kLayers);
  if (tower.whole_layers.empty()) tower.whole_layers = {7, 15, 23, 31};
  tower.rule = {.fit = ImageFit::kPixels, .least = 3136, .most = 12845056};
  const std::int64_t out =
      vision.size_or({"out_hidden_size"}, llm_limits::kHidden, source.model.hidden);
  tower.projectors = {qwen_merger(tower, false, out)};
}

/// Learned positions besides, and mergers of earlier layers, which norm what is merged. Qwen3.5 has
/// none of these.
void build_qwen3_vit(TowerSource& source, VisionTower& tower) {
  FieldReader& vision = source.vision;
  read_tower_sizes(vision, {"Qwen3VLVisionConfig", 27, 1152, 16, 4304}, tower);
  tower.name = "Qwen3-VL";
  tower.patch_bias = true;
  read_qwen_patches(vision, 16, tower);
  tower.position_rows =
      vision.size_of_class({"num_position_embeddings"}, llm_limits::kTokens, 2304);
  tower.rule = {.fit = ImageFit::kPixels, .least = 65536, .most = 16777216};
  const std::int64_t out =
      vision.size_or({"out_hidden_size"}, llm_limits::kHidden, source.model.hidden);
  tower.projectors = {qwen_merger(tower, true, out)};
  const std::int64_t merged = tower.merge * tower.merge, width = merged * tower.hidden;
  std::vector<std::int64_t> taps = {8, 16, 24};
  if (vision.has("deepstack_visual_indexes"))
    taps = vision.counts_or_empty("deepstack_visual_indexes", tower.layers - 1);
  else
    vision.note_class_default("deepstack_visual_indexes", "8, 16, 24");
  for (std::size_t i = 0; i < taps.size(); ++i)
    tower.projectors.push_back(
        {"deepstack merger " + std::to_string(i + 1),
         projector_mlp(merged, width, width, out, true, {projector_norm(merged, width, true)})});
}

const RegisterTower kQwen2Vit({"qwen2_vl"}, build_qwen2_vit);
const RegisterTower kQwen25Vit({"qwen2_5_vl"}, build_qwen2_5_vit);
const RegisterTower kQwen3Vit({"qwen3_vl", "qwen3_vl_moe", "qwen3_5", "qwen3_5_moe"},
                              build_qwen3_vit);

}  // namespace
}  // namespace orrery
