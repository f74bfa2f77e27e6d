// SPDX-License-Identifier: Apache-2.0
#include "models/kernels/tiles/gemm.h"

#include <algorithm>
#include <cmath>

#include "models/kernels/device/tile_menu.h"
#include "models/kernels/tiles/block_scaled_gemm.h"
#include "models/kernels/tiles/gemm_choice.h"
#include "models/kernels/tiles/matrix_product.h"
#include "sim/machine/clock.h"
#include "sim/machine/kernel_model.h"

namespace orrery {
namespace {

using enum GemmParameter;

/// A library's tiles for a device without asynchronous copies suit it, but are not better chosen
/// than those for others.
GemmChoice choose(const GemmJob& job, const Kernel& kernel, const AcceleratorConfig& accelerator,
                  GemmValues v) {
  const TileMenu menu = tile_menu(kernel, accelerator, job.product.bytes);
  GemmChoice choice = choose_tiles(job, menu, v);
  if (job.device.hiding.async_copy) return choice;
  GemmJob overlapped = job;
  overlapped.device.hiding.async_copy = true;
  choice.expected = std::max(choice.expected, choose_tiles(overlapped, menu, v).expected);
  return choice;
}

/// Bytes that the L2 gives all tiles together.
double cache_bytes(const GemmJob& job, const GemmCandidate& c) {
  return c.tiles * c.depth * tile_bytes(job.product, c.tile) / job.device.multicast;
}

/// The kinds of blocks of a candidate, as the closed form has them: all waves but the last in one
/// steady pace, the first after a fill.
void add_blocks(const GemmJob& job, const GemmCandidate& c, GemmValues v, BlockPlan& plan) {
  const auto whole = [](double x) { return static_cast<std::int64_t>(std::llround(x)); };
  const double units = job.device.units, tiles = c.tiles;
  BlockKind kind;
  kind.pipe_us = c.depth * joined_step(c.matrix, 0, job.step, job.device.overlap);
  const MatrixProduct& p = job.product;
  const Tile tile = c.tile;
  const TileTraffic traffic =
      tile_traffic(std::min(tile.rows, p.m), std::min(tile.columns, p.n), c.depth, tile);
  kind.cache_bytes = traffic.inputs * p.bytes.input + traffic.weights * p.bytes.weight;
  kind.memory_bytes = job.streaming.bytes / tiles;
  kind.fixed_us = c.steady - c.loop + c.exposed;
  kind.epilogue_us = std::max(0.0, c.loop + c.epilogue - c.steady);
  kind.flops = 2 * tile.rows * tile.columns * c.depth;
  BlockKind first = kind;
  first.fixed_us += v[kFill];
  first.memory_wait_us = job.streaming.wait_us;
  plan.kinds = {first, kind};
  plan.launch = {{0, whole(std::min(tiles, units))}};
  if (tiles <= units) return;
  const double full = (std::floor(tiles / units) - 1) * units;
  if (full > 0) plan.launch.push_back({1, whole(full)});
  const double rest = tiles - units - full;
  if (rest < 0.5) return;
  if (v[kWaves] > 0.999) {
    plan.launch.push_back({1, whole(rest)});
    return;
  }
  // Stream-K (Osama et al., PPoPP 2023): the tiles of the last wave in as many parts as there are
  // units. What `waves` says of the time that is not saved is left as latency.
  const double part = rest / units;
  BlockKind piece = kind;
  piece.pipe_us *= part;
  piece.cache_bytes *= part;
  piece.memory_bytes *= part;
  piece.flops *= part;
  piece.fixed_us = kind.fixed_us * part + v[kWaves] * (1 - part) * c.steady;
  plan.kinds.push_back(piece);
  plan.launch.push_back({2, whole(units)});
}

}  // namespace

KernelTime GemmFamily::time(const Kernel& kernel, const AcceleratorConfig& accelerator,
                            const double* values) const {
  const GemmValues v{values};
  if (runs_block_scaled(kernel, accelerator)) return block_scaled_time(kernel, accelerator, v);
  const GemmJob job = gemm_job(kernel, accelerator, v);
  const GemmChoice choice = choose(job, kernel, accelerator, v);
  KernelTime time;
  time.launch_us = v[kLaunch];
  time.total_us = time.launch_us + choice.expected;
  time.clock = 1 / clock_loss(job.product, job.device, accelerator, v);
  time.cache_bytes = cache_bytes(job, choice.best);
  time.loaded_bytes = time.cache_bytes * served(kernel, job.device);
  time.memory_bytes = job.streaming.bytes;
  return time;
}

std::optional<BlockPlan> GemmFamily::blocks(const Kernel& kernel,
                                            const AcceleratorConfig& accelerator,
                                            const double* values) const {
  const GemmValues v{values};
  if (runs_block_scaled(kernel, accelerator)) return std::nullopt;
  const GemmJob job = gemm_job(kernel, accelerator, v);
  const GemmChoice choice = choose(job, kernel, accelerator, v);
  BlockPlan plan;
  add_blocks(job, choice.best, v, plan);
  plan.launch_us = v[kLaunch];
  plan.scale = choice.expected / choice.best.time;
  plan.extra_us = choice.best.split * plan.scale;
  const TileDevice& d = job.device;
  const Streaming& s = job.streaming;
  BlockMachine& machine = plan.machine;
  machine.units = std::llround(d.units);
  machine.persistent = true;
  machine.memory_bytes_per_us = s.bytes > 0 ? s.bytes / (s.time_us - s.wait_us) : d.memory;
  machine.cache_bytes_per_us = d.multicast * d.cache_rate;
  machine.unit_bytes_per_us = d.unit_load;
  machine.memory_exponent = d.overlap.memory_exponent;
  machine.cache_exponent = d.overlap.cache_exponent;
  return plan;
}

namespace {

const GemmFamily gemm_family;
const RegisterTileFamily registered_gemm_tiles(
    KernelClass::kGemm,
    "products by tiles of the library's menu: waves of blocks on units, steps along the depth, "
    "splits of it",
    gemm_family);

}  // namespace
}  // namespace orrery
