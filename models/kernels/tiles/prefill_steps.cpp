// SPDX-License-Identifier: Apache-2.0
#include "models/kernels/tiles/prefill_steps.h"

#include <algorithm>
#include <cmath>

#include "models/kernels/tiles/unit_clock.h"
#include "sim/machine/kernel_model.h"

namespace orrery {
namespace {

PrefillTileSteps steps_of_prompt(double tile_index, double query, double window, PrefillTile tile) {
  const double high = std::min((tile_index + 1) * tile.rows, query);
  const double low = window > 0 ? std::max(0.0, tile_index * tile.rows - window + 1) : 0;
  const double first = std::floor(low / tile.columns);
  return {std::ceil(high / tile.columns) - first,
          window > 0 && high > window ? std::ceil((high - window) / tile.columns) - first : 0};
}

PrefillSteps steps_of(double query, double earlier, double window, PrefillTile tile) {
  const double tiles = std::ceil(query / tile.rows);
  PrefillSteps steps;
  for (double i = 0; i < tiles; ++i) {
    const auto [count, cut] = prefill_tile_steps(i, query, earlier, window, tile);
    if (i + 1 == tiles) {
      steps.last = count;
      steps.masked_last = cut;
    } else {
      steps.before += count;
      steps.most = std::max(steps.most, count);
      steps.masked_before += cut;
    }
    steps.masked_most = std::max(steps.masked_most, cut);
  }
  return steps;
}

/// Steps of a head without a window in closed form, for tiles whose columns divide the rows or are
/// twice as many.
PrefillSteps causal_steps(double query, double earlier, PrefillTile tile) {
  const double m = std::ceil(query / tile.rows) - 1;
  PrefillSteps steps;
  steps.last = std::ceil(query / tile.columns);
  steps.most = m > 0 ? std::ceil(m * tile.rows / tile.columns) : 0;
  if (tile.columns <= tile.rows) {
    steps.before = tile.rows / tile.columns * m * (m + 1) / 2;
  } else {
    const double pairs = std::floor(m / 2);
    steps.before = pairs * (pairs + 1) + (m > 2 * pairs ? pairs + 1 : 0);
  }
  const double more = earlier / tile.columns;
  steps.last += more;
  steps.before += m * more;
  if (m > 0) steps.most += more;
  return steps;
}

}  // namespace

PrefillTile prefill_tile(const AcceleratorConfig& accelerator, std::int64_t dim, double bytes) {
  if (multiplies_apart(accelerator)) return {dim <= 128 ? 256.0 : 128.0, dim <= 256 ? 128.0 : 64.0};
  if (matrix_issue(accelerator) != MatrixIssue::kWarpgroup)
    return {dim <= 128 ? 128.0 : 64.0, dim <= 64 ? 128.0 : 64.0};
  double columns = 256;
  while (columns > 64 && columns * static_cast<double>(dim) * bytes > 32768) columns /= 2;
  return {128, columns};
}

PrefillTileSteps prefill_tile_steps(double tile_index, double query, double earlier, double window,
                                    PrefillTile tile) {
  PrefillTileSteps steps = steps_of_prompt(tile_index, query, window, tile);
  const double hidden = tile_index * tile.rows - window + 1;  // keys before the window, if above 0
  const double more =
      window > 0 ? earlier - (std::max(0.0, earlier + hidden) - std::max(0.0, hidden)) : earlier;
  steps.count += more / tile.columns;
  if (window > 0 && earlier > 0) {
    const double whole = std::floor(earlier / tile.columns) * tile.columns;
    const double high = whole + std::min((tile_index + 1) * tile.rows, query);
    const double first = std::floor(std::max(0.0, whole + hidden) / tile.columns);
    steps.cut = high > window ? std::ceil((high - window) / tile.columns) - first : 0;
  }
  return steps;
}

PrefillSteps prefill_steps(double query, double earlier, double window, PrefillTile tile) {
  const bool closed = window == 0 && tile.columns <= 2 * tile.rows;
  return closed ? causal_steps(query, earlier, tile) : steps_of(query, earlier, window, tile);
}

}  // namespace orrery
