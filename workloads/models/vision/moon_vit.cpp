// SPDX-License-Identifier: Apache-2.0
// MoonViT (Kimi-VL, arXiv 2504.07491; Kimi K2.5, 2602.02276; Kimi K3): sizes of an image's own,
// learned positions that are interpolated, 2D rotary ones besides, patches merged 2 x 2. Names and
// defaults of Moonshot's configuration_kimi_vl.py, _kimi_k25.py and _kimi_k3.py, limits of patches
// of their preprocessor_config.json.
#include "workloads/models/vision/tower_reader.h"

namespace orrery {
namespace {

void read_moon_vit(FieldReader& vision, std::int64_t most_patches, VisionTower& tower) {
  tower.patch = vision.size_of_class({"patch_size"}, tower_limits::kPatch, 14);
  tower.position_rows = vision.size_of_class({"init_pos_emb_height"}, llm_limits::kHidden, 64) *
                        vision.size_of_class({"init_pos_emb_width"}, llm_limits::kHidden, 64);
  const std::vector<std::int64_t> merges =
      vision.counts_or_empty("merge_kernel_size", tower_limits::kMerge);
  tower.merge = merges.empty() ? 2 : merges.front();
  if (tower.merge == 0 || (merges.size() == 2 && merges[1] != tower.merge))
    vision.unsupported("a merge_kernel_size that is not a square is not modelled");
  tower.rotary = true;
  tower.norm_behind = true;
  tower.patch_bias = vision.flag("patch_embed_proj_bias", true);
  tower.qkv_bias = tower.output_bias = vision.flag("attn_bias", true);
  tower.mlp_bias = vision.flag("linear_bias", true);
  tower.norm_bias = vision.text_or({"norm_type"}, "layernorm") != "rmsnorm";
  if (const std::string mlp = vision.text_or({"mlp_type"}, "mlp2"); mlp != "mlp2")
    vision.unsupported("mlp_type '" + mlp + "' is not modelled");
  tower.rule = {.fit = ImageFit::kPatchLimit, .most = most_patches, .longest = 512};
}

Projector patch_merger(const VisionTower& tower, std::int64_t out) {
  const std::int64_t merged = tower.merge * tower.merge, width = merged * tower.hidden;
  return {"projector",
          projector_mlp(merged, width, width, out, true, {projector_norm(1, tower.hidden, true)})};
}

void build_kimi_vl(TowerSource& source, VisionTower& tower) {
  tower.name = "MoonViT";
  read_tower_sizes(source.vision, {"MoonViTConfig", 27, 1152, 16, 4304}, tower);
  read_moon_vit(source.vision, 4096, tower);
  tower.projectors = {patch_merger(tower, source.model.hidden)};
}

void build_kimi_k25(TowerSource& source, VisionTower& tower) {
  tower.name = "MoonViT-3D";
  read_tower_sizes(source.vision, {"KimiK25VisionConfig", 27, 1152, 16, 4304}, tower);
  read_moon_vit(source.vision, 16384, tower);
  const std::string kind = source.vision.text_or({"mm_projector_type"}, "patchmerger");
  if (kind != "patchmerger")
    source.vision.unsupported("mm_projector_type '" + kind + "' is not modelled");
  tower.projectors = {patch_merger(tower, source.model.hidden)};
}

/// Heads together are wider than the tower; the norm of the projector stands behind its products.
void build_kimi_k3_vision(TowerSource& source, VisionTower& tower) {
  tower.name = "MoonViT-3D";
  read_tower_sizes(source.vision, {"KimiK3VisionConfig", 27, 1024, 12, 4096}, tower);
  read_moon_vit(source.vision, 65536, tower);
  const std::string kind = source.vision.text_or({"mm_projector_type"}, "patchmergerv2");
  if (kind != "patchmergerv2")
    source.vision.unsupported("mm_projector_type '" + kind + "' is not modelled");
  const std::int64_t hidden = source.model.hidden;
  const std::int64_t merged = tower.merge * tower.merge, width = merged * tower.hidden;
  Projector merger{"projector", projector_mlp(merged, width, width, hidden, false)};
  merger.steps.push_back(projector_norm(merged, hidden, false));
  tower.projectors = {std::move(merger)};
}

const RegisterTower kKimiVl({"kimi_vl"}, build_kimi_vl);
const RegisterTower kKimiK25({"kimi_k25"}, build_kimi_k25);
const RegisterTower kKimiK3Vision({"kimi_k3"}, build_kimi_k3_vision);

}  // namespace
}  // namespace orrery
