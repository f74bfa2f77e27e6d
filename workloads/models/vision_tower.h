// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "workloads/models/image_rules.h"

namespace orrery {

/// How ranks of a tensor parallel group share a step of a projector.
enum class TowerSplit : std::uint8_t {
  kWhole,    ///< each has all of it
  kColumns,  ///< each has some of the columns of a product, or of what follows one
  kRows,     ///< each has some of the rows of a matrix; their sums are added up
};

/// A step of what brings patches to the language model.
struct ProjectorStep {
  enum class Kind : std::uint8_t { kNorm, kProduct, kFunction, kGatedFunction, kPool };
  Kind kind = Kind::kProduct;
  std::int64_t merged = 1;       ///< patches that a row stands for; kPool: that become one
  std::int64_t in = 0, out = 0;  ///< columns before and behind
  bool bias = false;             ///< products and norms: LayerNorm has one
  bool weights = true;           ///< norms: have scales
  TowerSplit split = TowerSplit::kWhole;
};

/// From the patches behind a layer of a tower to the width of the language model.
struct Projector {
  std::string name;  ///< "projector", "deepstack merger 1"
  std::vector<ProjectorStep> steps;
};

/// What sees images: patches of their pixels go through layers of attention without a causal mask,
/// then through a projector, whose rows are tokens of the prompt.
struct VisionTower {
  std::string name;  ///< name of its kind: "Qwen3-VL"
  ImageRule rule;
  std::int64_t patch = 14;  ///< pixels of a side of a patch
  std::int64_t merge = 1;   ///< patches of a side of a token
  std::int64_t channels = 3;
  std::int64_t frames = 1;         ///< a patch spans so many frames; an image is repeated
  bool patch_bias = false;         ///< the product that embeds patches has one
  std::int64_t position_rows = 0;  ///< learned positions
  std::int64_t class_tokens = 0;   ///< learned tokens beside the patches of each tile
  bool rotary = false;             ///< queries and keys are rotated by their places
  bool norm_before = false;        ///< a norm in front of the first layer
  bool norm_behind = false;        ///< a norm behind the last

  std::int64_t layers = 0;
  std::int64_t layers_run = 0;  ///< the projector reads what this one gives
  std::int64_t hidden = 0;
  std::int64_t heads = 0;
  std::int64_t head_dim = 0;
  std::int64_t intermediate = 0;
  std::int64_t norms = 2;  ///< norms of a layer
  bool norm_bias = true;   ///< LayerNorm, else RMS norm
  bool gated = false;      ///< MLP of three matrices
  bool mlp_bias = true;
  bool qkv_bias = true;
  bool output_bias = true;
  std::int64_t qk_norm = 0;   ///< columns of a norm of queries, and of one of keys; 0: none
  bool value_norm = false;    ///< values are normed, without weights
  bool layer_scales = false;  ///< vectors that scale what attention and MLP give
  std::int64_t window = 0;    ///< attention within squares of so many patches a side; 0: the tile
  std::vector<std::int64_t> whole_layers;  ///< layers without windows

  std::int64_t more_vectors = 0;  ///< parameters besides: of tokens between rows, of standardizing
  /// The first gives the tokens; what others give is added behind the first layers of the language
  /// model (Qwen3-VL's deepstack).
  std::vector<Projector> projectors;

  std::int64_t width() const { return heads * head_dim; }
  /// Rows of a tile in the layers.
  std::int64_t tile_rows(const ImagePatches& image) const {
    return image.rows * image.columns + image.padding + class_tokens;
  }
  /// Layers of the language model that get something added behind them.
  std::int64_t deepstack() const { return static_cast<std::int64_t>(projectors.size()) - 1; }
  bool windowed(std::int64_t layer) const {
    return window > 0 && std::ranges::find(whole_layers, layer) == whole_layers.end();
  }
  ImagePatches patches(ImageSize image) const { return patches_of(rule, patch, merge, image); }
};

/// Whether a tensor parallel group can split the heads and matrices of a tower, as engines do by
/// default (vLLM: mm_encoder_tp_mode "weights"). Else each rank has all of it and works on images
/// of its own ("data").
bool splits(const VisionTower& tower, int tp);

/// Parameters of a tower on a rank.
struct TowerParameters {
  std::int64_t split = 0;      ///< share of what the group splits
  std::int64_t whole = 0;      ///< what every rank has
  std::int64_t projector = 0;  ///< those of both that are projectors'
  std::int64_t total() const { return split + whole; }
};

TowerParameters tower_parameters(const VisionTower& tower, int tp);

/// FLOPs of the products for one image, attention included.
double tower_flops(const VisionTower& tower, const ImagePatches& image);

/// Query-key pairs of a head in the windows of one tile, and those windows by their sizes.
struct TowerWindows {
  std::int64_t count = 0, patches = 0;  ///< windows of a size, and patches of each
};

std::vector<TowerWindows> windows_of(const VisionTower& tower, const ImagePatches& image);

}  // namespace orrery
