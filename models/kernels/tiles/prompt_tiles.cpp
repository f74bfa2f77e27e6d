// SPDX-License-Identifier: Apache-2.0
#include "models/kernels/tiles/prompt_tiles.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

namespace orrery {
namespace {

constexpr std::array<double, 17> kShortest = {0,  .05, .1,  .15, .2,  .3,  .4,   .5, .6,
                                              .7, .8,  .85, .9,  .94, .97, .985, 1.0};
constexpr int kColumns = 251;      // jobs per server from 1 to 6
constexpr double kSpacing = 0.02;  // of the columns
constexpr double kStep = 0.002;    // of time, where the renewal equation is solved
constexpr double kEnd = 6.5;       // longest jobs: by then more than 6 jobs a server have started

using Row = std::array<double, kColumns>;

/// Solves u = f + f * u on a grid (f: probability of a length, u: of an end of some job) and
/// inverts 1 + its sum. Lengths are uniform, so that the convolution is a difference of running
/// sums.
Row solve(double shortest) {
  const auto cells = static_cast<std::size_t>(kEnd / kStep);
  const double low = shortest / kStep, high = 1 / kStep, mass = 1 / (high - low);
  std::vector<double> sum(cells + 1);  // sum of u up to a cell
  const auto at = [&sum](double cell) {
    if (cell <= 0) return 0.0;
    const auto i = static_cast<std::size_t>(cell);
    return sum[i] + (cell - static_cast<double>(i)) * (sum[i + 1] - sum[i]);
  };
  for (std::size_t i = 0; i < cells; ++i) {
    const double end = static_cast<double>(i + 1);
    const double first =
        std::clamp((end - low) * mass, 0.0, 1.0) - std::clamp((end - 1 - low) * mass, 0.0, 1.0);
    // Jobs that end in this cell after another ended between `high` and `low` cells before.
    const double from = std::max(0.0, end - 0.5 - high);
    const double to = std::max(0.0, std::min(end - 0.5 - low, static_cast<double>(i)));
    sum[i + 1] = sum[i] + first + mass * std::max(0.0, at(to) - at(from));
  }
  Row row{};
  std::size_t cell = 0;
  for (int column = 0; column < kColumns; ++column) {
    const double wanted = column * kSpacing;  // jobs a server beyond the first
    while (cell < cells && sum[cell + 1] < wanted) ++cell;
    const double rise = cell < cells ? sum[cell + 1] - sum[cell] : 0;
    const double part = rise > 0 ? std::max(0.0, wanted - sum[cell]) / rise : 0;
    row[static_cast<std::size_t>(column)] = (static_cast<double>(cell) + part) * kStep;
  }
  row[0] = 0;
  return row;
}

const std::array<Row, kShortest.size()>& table() {
  static const std::array<Row, kShortest.size()> rows = [] {
    std::array<Row, kShortest.size()> solved{};
    for (std::size_t i = 0; i + 1 < kShortest.size(); ++i) solved[i] = solve(kShortest[i]);
    for (std::size_t column = 0; column < kColumns; ++column)
      solved.back()[column] = std::ceil(static_cast<double>(column) * kSpacing - 1e-9);
    return solved;
  }();
  return rows;
}

double near(double jobs_per_server, double shortest) {
  const auto above = std::upper_bound(kShortest.begin(), kShortest.end(), shortest);
  const auto row = static_cast<std::size_t>(
      std::clamp<std::ptrdiff_t>(above - kShortest.begin() - 1, 0, kShortest.size() - 2));
  const double weight = (shortest - kShortest[row]) / (kShortest[row + 1] - kShortest[row]);
  const double place = std::clamp((jobs_per_server - 1) / kSpacing, 0.0, kColumns - 1.000001);
  const auto column = static_cast<std::size_t>(place);
  const double part = place - static_cast<double>(column);
  const auto at = [&](std::size_t r) {
    return table()[r][column] * (1 - part) + table()[r][column + 1] * part;
  };
  return at(row) * (1 - weight) + at(row + 1) * weight;
}

/// Blackwell's renewal theorem: m(t) tends to t / mean + (squared variation - 1) / 2.
double far(double jobs_per_server, double shortest) {
  if (shortest > 0.999) return std::ceil(jobs_per_server - 1e-9) - 1;
  const double mean = (1 + shortest) / 2;
  const double variation = (1 - shortest) * (1 - shortest) / 12 / (mean * mean);
  return mean * (jobs_per_server - (1 + variation) / 2);
}

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

double last_start(double jobs_per_server, double shortest) {
  if (jobs_per_server <= 1) return 0;
  shortest = std::clamp(shortest, 0.0, 1.0);
  const double blend = std::clamp((jobs_per_server - 4.5) / 1.5, 0.0, 1.0);
  const double close = blend < 1 ? near(jobs_per_server, shortest) : 0;
  const double distant = blend > 0 ? far(jobs_per_server, shortest) : 0;
  return close * (1 - blend) + distant * blend;
}

double makespan(double jobs, double servers, double longest, double work) {
  // Uniform lengths with the mean of the real ones: equal tiles become waves by themselves.
  const double shortest = std::clamp(2 * work / (jobs * longest) - 1, 0.0, 1.0);
  return std::max(longest * (last_start(jobs / servers, shortest) + 1), work / servers);
}

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
