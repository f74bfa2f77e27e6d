// SPDX-License-Identifier: Apache-2.0
// Gemma 4's tower: a budget of tokens for an image in its own shape, learned and rotary positions
// of rows and columns, four norms a layer, pooled patches. Names and defaults of transformers'
// configuration_gemma4.py and modeling_gemma4.py.
#include "workloads/models/vision/tower_reader.h"

namespace orrery {
namespace {

void build_gemma4_vit(TowerSource& source, VisionTower& tower) {
  FieldReader& vision = source.vision;
  tower.name = "Gemma 4";
  read_tower_sizes(vision, {"Gemma4VisionConfig", 16, 768, 12, 3072}, tower);
  if (vision.flag("use_clipped_linears", false))
    vision.unsupported("use_clipped_linears is not modelled");
  if (vision.size_or({"num_key_value_heads"}, llm_limits::kHeads, tower.heads) != tower.heads)
    vision.unsupported("heads that share keys and values are not modelled");
  tower.patch = vision.size_of_class({"patch_size"}, tower_limits::kPatch, 16);
  tower.merge = vision.size_of_class({"pooling_kernel_size"}, tower_limits::kMerge, 3);
  tower.position_rows =
      2 * vision.size_of_class({"position_embedding_size"}, llm_limits::kTokens, 10240);
  tower.rule = {.fit = ImageFit::kTokenBudget,
                .most = source.wrapper.size_of_class({"vision_soft_tokens_per_image"},
                                                     llm_limits::kTokens, 280)};
  const bool bias = vision.flag("attention_bias", false);
  tower.qkv_bias = tower.output_bias = bias;
  tower.norm_bias = tower.mlp_bias = false;
  tower.gated = true;
  tower.norms = 4;
  tower.qk_norm = tower.head_dim;
  tower.value_norm = true;
  tower.rotary = true;
  if (vision.flag("standardize", false)) tower.more_vectors = 2 * tower.hidden;
  const std::int64_t merged = tower.merge * tower.merge;
  ProjectorStep pool{ProjectorStep::Kind::kPool, merged, tower.hidden, tower.hidden};
  tower.projectors = {{"projector",
                       {pool, projector_norm(merged, tower.hidden, false, false),
                        projector_product(merged, tower.hidden, source.model.hidden, false)}}};
}

const RegisterTower kGemma4Vit({"gemma4"}, build_gemma4_vit);

}  // namespace
}  // namespace orrery
