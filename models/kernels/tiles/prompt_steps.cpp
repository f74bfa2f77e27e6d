// SPDX-License-Identifier: Apache-2.0
#include "models/kernels/tiles/prompt_steps.h"

#include <algorithm>
#include <cmath>

namespace orrery {
namespace {

/// For tiles whose columns divide the rows or are twice as many.
PromptSteps causal_steps(const SeenTokens& seen, PromptTile tile) {
  const double m = std::ceil(seen.query / tile.rows) - 1;
  PromptSteps steps;
  steps.last = std::ceil(seen.query / tile.columns);
  steps.most = m > 0 ? std::ceil(m * tile.rows / tile.columns) : 0;
  if (tile.columns <= tile.rows) {
    steps.before = tile.rows / tile.columns * m * (m + 1) / 2;
  } else {
    const double pairs = std::floor(m / 2);
    steps.before = pairs * (pairs + 1) + (m > 2 * pairs ? pairs + 1 : 0);
  }
  const double earlier = seen.prefix / tile.columns;
  steps.last += earlier;
  steps.before += m * earlier;
  if (m > 0) steps.most += earlier;
  return steps;
}

/// Without earlier tokens.
TileSteps new_steps(double tile_index, const SeenTokens& seen, PromptTile tile) {
  const double window = seen.window;
  const double high = std::min((tile_index + 1) * tile.rows, seen.query);
  const double low = window > 0 ? std::max(0.0, tile_index * tile.rows - window + 1) : 0;
  const double first = std::floor(low / tile.columns);
  return {std::ceil(high / tile.columns) - first,
          window > 0 && high > window ? std::ceil((high - window) / tile.columns) - first : 0};
}

}  // namespace

TileSteps tile_steps(double tile_index, const SeenTokens& seen, PromptTile tile) {
  TileSteps steps = new_steps(tile_index, seen, tile);
  if (seen.prefix == 0) return steps;
  if (seen.window == 0) {
    steps.count += seen.prefix / tile.columns;
    return steps;
  }
  const double hidden = tile_index * tile.rows - seen.window + 1;  // keys before it, if above 0
  const double unseen = std::max(0.0, seen.prefix + hidden) - std::max(0.0, hidden);
  steps.count += (seen.prefix - unseen) / tile.columns;
  const double whole = std::floor(seen.prefix / tile.columns) * tile.columns;
  const double high = whole + std::min((tile_index + 1) * tile.rows, seen.query);
  const double first = std::floor(std::max(0.0, whole + hidden) / tile.columns);
  steps.cut = high > seen.window ? std::ceil((high - seen.window) / tile.columns) - first : 0;
  return steps;
}

PromptSteps prompt_steps(const SeenTokens& seen, PromptTile tile) {
  if (seen.window == 0 && tile.columns <= 2 * tile.rows) return causal_steps(seen, tile);
  const double tiles = std::ceil(seen.query / tile.rows);
  PromptSteps steps;
  for (double i = 0; i < tiles; ++i) {
    const auto [count, cut] = tile_steps(i, seen, tile);
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

}  // namespace orrery
