// SPDX-License-Identifier: Apache-2.0
#include "workloads/models/vision_tower.h"

#include "workloads/base/real.h"

namespace orrery {
namespace {

std::int64_t tower_norm(const VisionTower& tower) {
  return tower.hidden * (tower.norm_bias ? 2 : 1);
}

/// Elements of the matrices of a layer: queries, keys and values, output, and the MLP.
std::int64_t layer_matrices(const VisionTower& tower) {
  return 4 * tower.hidden * tower.width() +
         (tower.gated ? 3 : 2) * tower.hidden * tower.intermediate;
}

TowerParameters layer_parameters_of(const VisionTower& tower, int tp) {
  const std::int64_t inputs = tower.gated ? 2 : 1;
  TowerParameters p;
  p.split = layer_matrices(tower) / tp;
  if (tower.qkv_bias) p.split += 3 * tower.width() / tp;
  if (tower.mlp_bias) p.split += inputs * tower.intermediate / tp;
  p.whole = tower.norms * tower_norm(tower) + 2 * tower.qk_norm;
  if (tower.output_bias) p.whole += tower.hidden;
  if (tower.mlp_bias) p.whole += tower.hidden;
  if (tower.layer_scales) p.whole += 2 * tower.hidden;
  return p;
}

TowerParameters step_parameters(const ProjectorStep& step, int tp) {
  TowerParameters p;
  if (step.kind == ProjectorStep::Kind::kNorm)
    p.whole = (step.weights ? step.in : 0) + (step.bias ? step.in : 0);
  if (step.kind != ProjectorStep::Kind::kProduct) return p;
  const std::int64_t bias = step.bias ? step.out : 0;
  const std::int64_t matrix = step.in * step.out;
  if (step.split == TowerSplit::kWhole) return {.split = 0, .whole = matrix + bias};
  if (step.split == TowerSplit::kColumns) return {.split = (matrix + bias) / tp, .whole = 0};
  return {.split = matrix / tp, .whole = bias};
}

}  // namespace

bool splits(const VisionTower& tower, int tp) {
  if (tower.heads % tp != 0 || tower.intermediate % tp != 0) return false;
  for (const Projector& projector : tower.projectors) {
    for (const ProjectorStep& step : projector.steps) {
      const std::int64_t shared = step.split == TowerSplit::kColumns ? step.out
                                  : step.split == TowerSplit::kRows  ? step.in
                                                                     : 0;
      if (shared % tp != 0) return false;
    }
  }
  return true;
}

TowerParameters tower_parameters(const VisionTower& tower, int tp) {
  const int ranks = splits(tower, tp) ? tp : 1;
  const TowerParameters layer = layer_parameters_of(tower, ranks);
  TowerParameters all;
  all.split = tower.layers * layer.split;
  all.whole = tower.layers * layer.whole;
  all.whole += tower.channels * tower.frames * tower.patch * tower.patch * tower.hidden;
  if (tower.patch_bias) all.whole += tower.hidden;
  all.whole += (tower.position_rows + tower.class_tokens) * tower.hidden;
  all.whole += (tower.norm_before ? tower_norm(tower) : 0) +
               (tower.norm_behind ? tower_norm(tower) : 0) + tower.more_vectors;
  for (const Projector& projector : tower.projectors) {
    for (const ProjectorStep& step : projector.steps) {
      const TowerParameters p = step_parameters(step, ranks);
      all.split += p.split;
      all.whole += p.whole;
      all.projector += p.total();
    }
  }
  return all;
}

std::vector<TowerWindows> windows_of(const VisionTower& tower, const ImagePatches& image) {
  const std::int64_t w = tower.window;
  const std::int64_t down = image.rows / w, across = image.columns / w;
  const std::int64_t low = image.rows % w, narrow = image.columns % w;
  std::vector<TowerWindows> all;
  for (const TowerWindows& some :
       {TowerWindows{down * across, w * w}, TowerWindows{across, low * w},
        TowerWindows{down, narrow * w}, TowerWindows{1, low * narrow}})
    if (some.count * some.patches > 0) all.push_back(some);
  return all;
}

double tower_flops(const VisionTower& tower, const ImagePatches& image) {
  const double rows = real(image.tiles * tower.tile_rows(image));
  const double patch = real(tower.channels * tower.frames * tower.patch * tower.patch);
  const double whole =
      real(image.tiles) * real(tower.tile_rows(image)) * real(tower.tile_rows(image));
  double windows = 0;
  if (tower.window > 0)
    for (const TowerWindows& some : windows_of(tower, image))
      windows += real(image.tiles * some.count) * real(some.patches) * real(some.patches);
  double flops = 2 * real(image.patches()) * patch * real(tower.hidden);
  if (image.padding > 0)
    flops += 2 * real(image.tiles * image.padding) * patch * real(tower.hidden);
  for (std::int64_t layer = 0; layer < tower.layers_run; ++layer)
    flops += 2 * rows * real(layer_matrices(tower)) +
             4 * real(tower.width()) * (tower.windowed(layer) ? windows : whole);
  for (const Projector& projector : tower.projectors)
    for (const ProjectorStep& step : projector.steps)
      if (step.kind == ProjectorStep::Kind::kProduct)
        flops += 2 * real(image.patches() / step.merged) * real(step.in) * real(step.out);
  return flops;
}

}  // namespace orrery
