// SPDX-License-Identifier: Apache-2.0
// CLIP's ViT (arXiv 2103.00020) and SigLIP's (2303.15343) with an MLP behind them: LLaVA 1.5
// (2310.03744), LLaVA-NeXT and Phi-3.5-vision; and SigLIP pooled, Gemma 3 (2503.19786). Names and
// defaults of transformers' configuration_clip.py, _siglip.py, _llava.py and of
// modeling_phi3_v.py.
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "workloads/models/vision/tower_reader.h"

namespace orrery {
namespace {

/// A square image and its learned positions.
void read_square(FieldReader& vision, std::int64_t image, std::int64_t patch, VisionTower& tower) {
  tower.patch = vision.size_of_class({"patch_size"}, tower_limits::kPatch, patch);
  tower.rule.fit = ImageFit::kSquare;
  tower.rule.side = vision.size_of_class({"image_size"}, tower_limits::kImage, image);
  const std::int64_t side = tower.rule.side / tower.patch;
  if (side == 0) vision.invalid("patch_size", "wider than an image");
  tower.position_rows = side * side;
}

/// A class token with a position, and norms in front of the first layer and behind the last.
void be_clip(VisionTower& tower) {
  tower.name = "CLIP";
  tower.class_tokens = 1;
  ++tower.position_rows;
  tower.norm_before = true;
  tower.norm_behind = true;
}

void build_clip(FieldReader& vision, VisionTower& tower) {
  read_tower_sizes(vision, {"CLIPVisionConfig", 12, 768, 12, 3072}, tower);
  read_square(vision, 224, 32, tower);
  be_clip(tower);
}

void build_siglip(FieldReader& vision, VisionTower& tower) {
  tower.name = "SigLIP";
  read_tower_sizes(vision, {"SiglipVisionConfig", 12, 768, 12, 3072}, tower);
  read_square(vision, 224, 16, tower);
  tower.patch_bias = true;
  tower.norm_behind = true;
}

/// The projector reads what a layer gives, counted from the last, without the norm behind.
void read_behind(VisionTower& tower, std::int64_t layer) {
  tower.layers_run = layer;
  tower.norm_behind = false;
  tower.more_vectors += 2 * tower.hidden;
}

/// -1 is the last layer, -2 the one before.
std::int64_t feature_layer(const TowerSource& source, std::int64_t layers) {
  const auto found = source.configuration.find("vision_feature_layer");
  if (found == source.configuration.end()) return layers - 1;
  if (!found->is_number_integer())
    source.wrapper.invalid("vision_feature_layer", "several layers are not modelled");
  const auto layer = found->get<std::int64_t>();
  if (layer < -layers || layer > layers || layer == 0)
    source.wrapper.invalid("vision_feature_layer", "the tower has no such layer");
  return layer < 0 ? layers + 1 + layer : layer;
}

/// Pairs of heights and widths.
std::vector<ImageSize> listed_sizes(const TowerSource& source) {
  std::vector<ImageSize> sizes;
  const auto found = source.configuration.find("image_grid_pinpoints");
  if (found == source.configuration.end())
    return {{336, 672}, {672, 336}, {672, 672}, {1008, 336}, {336, 1008}};
  const auto is_size = [](const nlohmann::json& side) {
    return side.is_number_integer() && side >= 1 && side <= tower_limits::kImage;
  };
  for (const nlohmann::json& pair : *found) {
    if (!pair.is_array() || pair.size() != 2 || !is_size(pair[0]) || !is_size(pair[1]))
      source.wrapper.invalid("image_grid_pinpoints", "expected pairs of heights and widths");
    sizes.push_back({pair[0].get<std::int64_t>(), pair[1].get<std::int64_t>()});
  }
  if (sizes.empty()) source.wrapper.invalid("image_grid_pinpoints", "empty");
  return sizes;
}

void read_llava_mlp(TowerSource& source, VisionTower& tower) {
  const std::int64_t hidden = source.model.hidden;
  const bool bias = source.wrapper.flag("multimodal_projector_bias", true);
  tower.projectors = {{"projector", projector_mlp(1, tower.hidden, hidden, hidden, bias)}};
}

/// LLaVA takes any tower.
void build_llava(TowerSource& source, VisionTower& tower) {
  const std::string kind = source.vision.text_or({"model_type"}, "clip_vision_model");
  if (kind == "pixtral")
    read_pixtral_vit(source.vision, tower);
  else if (kind == "clip_vision_model")
    build_clip(source.vision, tower);
  else if (kind == "siglip_vision_model")
    build_siglip(source.vision, tower);
  else
    source.vision.unsupported("a tower of model_type '" + kind + "' is not modelled");
  if (source.wrapper.text_or({"vision_feature_select_strategy"}, "default") == "full" &&
      tower.class_tokens > 0)
    source.vision.unsupported("class tokens in the prompt are not modelled");
  if (kind != "pixtral") read_behind(tower, feature_layer(source, tower.layers));
  read_llava_mlp(source, tower);
}

/// Tiles in one of the sizes that the file lists, with a learned token behind each row.
void build_llava_next(TowerSource& source, VisionTower& tower) {
  build_llava(source, tower);
  tower.rule.fit = ImageFit::kListedGrids;
  tower.rule.listed = listed_sizes(source);
  tower.more_vectors += source.model.hidden;
}

/// Sizes of CLIP-L/14 at 336 pixels, which the file names, and four patches a token in tiles, of
/// which the processor makes at most 16 (preprocessor_config.json: num_crops).
void build_phi3_vision(TowerSource& source, VisionTower& tower) {
  if (source.vision.text_or({"model_name"}, "") != "openai/clip-vit-large-patch14-336")
    source.vision.unsupported("a tower other than clip-vit-large-patch14-336 is not modelled");
  tower.layers = 24;
  tower.hidden = 1024;
  tower.heads = 16;
  tower.head_dim = 64;
  tower.intermediate = 4096;
  tower.patch = 14;
  tower.merge = 2;
  tower.rule = {.fit = ImageFit::kWidestGrid, .side = 336, .most = 16};
  tower.position_rows = std::int64_t{24} * 24;
  be_clip(tower);
  read_behind(tower, tower.layers - 1);
  const std::int64_t width = 4 * tower.hidden, hidden = source.model.hidden;
  tower.more_vectors += 2 * width;  // behind rows, and between tiles and the whole image
  tower.projectors = {{"projector", projector_mlp(4, width, hidden, hidden, true)}};
}

/// Patches are averaged to `mm_tokens_per_image`, normed and multiplied by one matrix.
void build_gemma3_vision(TowerSource& source, VisionTower& tower) {
  build_siglip(source.vision, tower);
  const std::int64_t side = tower.rule.side / tower.patch;
  const std::int64_t tokens =
      source.wrapper.size_of_class({"mm_tokens_per_image"}, side * side, 256);
  std::int64_t down = 1;
  while (down * down < tokens) ++down;
  if (down * down != tokens || side % down != 0)
    source.wrapper.invalid("mm_tokens_per_image", "is not a square that divides that of patches");
  tower.merge = side / down;
  const std::int64_t merged = tower.merge * tower.merge;
  ProjectorStep pool{ProjectorStep::Kind::kPool, merged, tower.hidden, tower.hidden};
  tower.projectors = {{"projector",
                       {pool, projector_norm(merged, tower.hidden, false),
                        projector_product(merged, tower.hidden, source.model.hidden, false)}}};
}

const RegisterTower kLlavaTower({"llava"}, build_llava);
const RegisterTower kLlavaNextTower({"llava_next"}, build_llava_next);
const RegisterTower kPhi3Tower({"phi3_v"}, build_phi3_vision);
const RegisterTower kGemma3Tower({"gemma3"}, build_gemma3_vision);

}  // namespace
}  // namespace orrery
