// SPDX-License-Identifier: Apache-2.0
#include "models/kernels/tiles/block_scaled_gemm.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "sim/machine/kernel_model.h"

namespace orrery {
namespace {

using enum GemmParameter;

constexpr double kScaledDepth = 128;  ///< elements of the sum that share a scale
constexpr double kSwapBelow = 48;     ///< tokens below which operands are swapped
constexpr double kNarrowest = 16, kWidest = 128, kGrain = 8;  ///< columns of a tile

/// A product laid out for the matrix instruction: rows are tokens, or features when swapped.
struct Layout {
  double rows = 0, columns = 0;
  Tile tile;
  bool swapped = false;
  double beyond = 0;  ///< rows of the tiles that lie beyond the product
};

Layout layout_of(const Kernel& kernel, const MatrixProduct& p, double units) {
  Layout layout{p.m, p.n, {}, false, 0};
  if (kernel.tile[0] > 0 && kernel.tile[1] > 0) {
    layout.tile = {static_cast<double>(kernel.tile[0]), static_cast<double>(kernel.tile[1])};
  } else {
    layout.swapped = p.m < kSwapBelow;
    if (layout.swapped) std::swap(layout.rows, layout.columns);
    const double rows = !layout.swapped && p.m <= 64 ? 64 : 128;
    layout.tile = block_scaled_tile(layout.rows, layout.columns, p.batch, rows, units);
  }
  if (!layout.swapped && p.m > 64)
    layout.beyond = std::ceil(p.m / layout.tile.rows) * layout.tile.rows - p.m;
  return layout;
}

/// us of `beyond` rows a step, of which a tile in `row_tiles` has them.
double padding_us(const Layout& layout, double active, GemmValues v) {
  if (layout.beyond <= 0) return 0;
  const double x = layout.beyond * active / std::ceil(layout.rows / layout.tile.rows) / 1000;
  return v[kPadding] * x * x / (x + v[kPaddingFree]);
}

}  // namespace

bool runs_block_scaled(const Kernel& kernel, const AcceleratorConfig& accelerator) {
  return kernel.precision == Precision::kFp8Block && kernel.weights == WeightFormat{} &&
         matrix_issue(accelerator) == MatrixIssue::kWarpgroup;
}

Tile block_scaled_tile(double rows, double columns, double batch, double tile_rows, double units) {
  const double row_tiles = batch * std::ceil(rows / tile_rows);
  Tile best{tile_rows, kNarrowest};
  std::pair<double, double> best_cost{INFINITY, 0};
  for (double width = kNarrowest; width <= kWidest; width += kGrain) {
    const double tiles = row_tiles * std::ceil(columns / width);
    const double waves = std::ceil(tiles / units);
    const std::pair<double, double> cost{waves, waves * units - tiles};  // idle in the last wave
    if (cost < best_cost) {
      best_cost = cost;
      best.columns = width;
    }
  }
  return best;
}

KernelTime block_scaled_time(const Kernel& kernel, const AcceleratorConfig& accelerator,
                             GemmValues v) {
  const TileDevice d = tile_device(accelerator, kernel);
  const MatrixProduct p = matrix_product(kernel, d);
  if (kernel.tile[0] > 0) tile_menu(kernel, accelerator, p.bytes);  // refuses what does not fit
  const Layout layout = layout_of(kernel, p, d.units);
  const Tile tile = layout.tile;
  const double tiles =
      p.batch * std::ceil(layout.rows / tile.rows) * std::ceil(layout.columns / tile.columns);
  const double waves = counted_waves(tiles, d.units, v), active = tiles / waves;
  const double rows = std::min(tile.rows, layout.rows);
  const double columns = std::min(tile.columns, layout.columns);
  const double matrix =
      2 * tile.rows * tile.columns * kScaledDepth / unit_rate(p, d, accelerator, v);
  const TileTraffic traffic = tile_traffic(rows, columns, kScaledDepth, tile);
  const double loaded = traffic.inputs * p.bytes.input + traffic.weights * p.bytes.weight;
  const double load = loaded / loading_rate(d, active);
  const double latency =
      v[kStepLatency] * 1e-3 * kScaledDepth * (layout.swapped ? v[kSwappedStep] : 1);
  const double blocks = d.hiding.resident(loaded, tile.rows * tile.columns, tiles / d.units);
  const double step = d.hiding.step_us(std::sqrt(matrix * matrix + load * load + latency * latency),
                                       matrix + load + latency, blocks) +
                      padding_us(layout, active, v);
  const double epilogue = v[kEpilogue] * rows * columns / 16384;
  const double compute = tiles_us(step * std::ceil(p.k / kScaledDepth), epilogue, waves, v);
  const Streaming stream = streaming(p, kernel, d, v, v[kWriteEfficiency]);
  const double memory = stream.time_us;
  KernelTime time;
  time.launch_us = v[kLaunch];
  time.total_us =
      time.launch_us + std::cbrt(compute * compute * compute + memory * memory * memory);
  time.memory_bytes = stream.bytes;
  time.clock = 1 / clock_loss(p, d, accelerator, v);
  time.cache_bytes = tiles * loaded * std::ceil(p.k / kScaledDepth) / d.multicast;
  time.loaded_bytes = time.cache_bytes * served(kernel, d);
  return time;
}

}  // namespace orrery
