// SPDX-License-Identifier: Apache-2.0
#include "models/kernels/tiles/resident_blocks.h"

#include <algorithm>
#include <cmath>

#include "models/kernels/device/tile_menu.h"

namespace orrery {
namespace {

/// Warps of a block of a library without asynchronous copies: 256 threads for 128 x 128 or 128 x
/// 256 results (NVIDIA CUTLASS 2, default configurations for sm_70).
constexpr int kBlockWarps = 8;

}  // namespace

double LoadHiding::resident(double step_bytes, double results_held, double tiles) const {
  const double result_bytes = kResultBytes * results_held;
  const double by_shared = shared / (step_bytes + (together ? result_bytes : 0));
  const double by_results = together ? INFINITY : results / result_bytes;
  return std::max(1.0, std::floor(std::min({by_shared, by_results, most, tiles})));
}

LoadHiding load_hiding(const AcceleratorConfig& accelerator) {
  LoadHiding hiding;
  if (!accelerator.core) return hiding;
  const TileRoom room = tile_room(accelerator);
  hiding.async_copy = accelerator.core->async_copy.value;
  hiding.shared = room.shared;
  hiding.results = room.results;
  hiding.together = room.together;
  const int by_warps = std::max(1, accelerator.core->max_warps.value / kBlockWarps);
  hiding.most = std::min(accelerator.core->max_blocks.value, by_warps);
  return hiding;
}

}  // namespace orrery
