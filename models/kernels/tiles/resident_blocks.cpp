// SPDX-License-Identifier: Apache-2.0
#include "models/kernels/tiles/resident_blocks.h"

#include <algorithm>
#include <cmath>

#include "models/kernels/tiles/tile_menu.h"

namespace orrery {

double LoadHiding::resident(double step_bytes, double results_held, double tiles) const {
  const double result_bytes = kResultBytes * results_held;
  const double by_shared = shared / (step_bytes + (together ? result_bytes : 0));
  const double by_results = together ? INFINITY : results / result_bytes;
  return std::max(1.0, std::floor(std::min({by_shared, by_results, most, tiles})));
}

double LoadHiding::step_us(double overlapped, double serial, double blocks) const {
  return async_copy ? overlapped : std::max(overlapped, serial / blocks);
}

LoadHiding load_hiding(const AcceleratorConfig& accelerator) {
  LoadHiding hiding;
  if (!accelerator.core) return hiding;
  const TileRoom room = tile_room(accelerator);
  hiding.async_copy = accelerator.core->async_copy.value;
  hiding.shared = room.shared;
  hiding.results = room.results;
  hiding.together = room.together;
  hiding.most = accelerator.core->max_blocks.value;
  return hiding;
}

}  // namespace orrery
