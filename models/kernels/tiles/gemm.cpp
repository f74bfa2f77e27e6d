// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>

#include "models/kernels/device/cache_parts.h"
#include "models/kernels/device/dram.h"
#include "models/kernels/device/family.h"
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

/// What a data sheet says of one unit.
struct UnitRates {
  double clock = 0;   ///< clocks in a us
  double flops = 0;   ///< a clock
  double memory = 0;  ///< bytes/us of the memory
  MatrixIssue issue = kUnknownIssue;
};

UnitRates unit_rates(const Kernel& kernel, const AcceleratorConfig& accelerator) {
  const TileDevice d = tile_device(accelerator, kernel);
  const double clock = accelerator.compute.clock.value.base() / 1e6;
  return {clock, d.rate / d.units / clock, d.memory / d.units, d.issue};
}

/// A matrix product as a vendor's library runs it: the fastest of a menu of tiles, with or without
/// splitting the summed dimension. A tile is filled, runs its main loop (matrix instructions, loads
/// into shared memory and the latency of a step, whichever holds it up), and writes its results
/// while the next tile computes; waves of tiles follow each other. The memory streams operands
/// beside that, unless they are in the L2: measured tables rotate five copies of the weights and
/// none of the activations. Long products lose clock to the power limit. Weights that are narrower
/// than the operands are widened on the vector lanes beside the matrix instructions; 2:4 sparse
/// ones run at the sparse rate of the device. fp8_block on instructions of warpgroups runs by the
/// rule of block_scaled_gemm.h.
class GemmFamily final : public KernelFamily {
 public:
  const std::vector<ParameterInfo>& parameters() const override {
    static const std::vector<ParameterInfo> table = {
        {"launch", "us", 0.1, 1000},
        {"memory_efficiency", "1", 0.3, 1},
        {"cache_share", "1", 0.01, 5},
        {"memory_latency", "us", 0.01, 6},
        {"matrix_efficiency", "1", 0.2, 1.1},
        {"throttle", "1", 5e-4, 1.5},
        {"throttle_time", "us", 10, 10000},
        {"step_latency", "ns", 0.02, 8},
        {"fill", "us", 0.02, 5},
        {"epilogue", "us", 0.01, 6},
        {"overlap_loss", "1", 1e-3, 1},
        {"waves", "1", 1e-3, 1},
        {"split", "us", 0.02, 9},
        {"split_traffic", "1", 1e-3, 6},
        {"write_efficiency", "1", 0.1, 1},
        {"swapped_step", "1", 0.5, 3},
        {"padding", "us", 1e-3, 1},
        {"padding_free", "1", 0.05, 20},
    };
    return table;
  }

  std::vector<double> priors(const AcceleratorConfig& accelerator,
                             Precision precision) const override {
    // Regularities of the devices that have been fitted: the latency of a step follows the width of
    // the elements, the epilogue drains at a unit's share of the memory bandwidth.
    const double units = static_cast<double>(accelerator.compute.units.value) / accelerator.dies;
    const double memory = accelerator.memory.bandwidth.value.base() / accelerator.dies / 1e6;
    // Short products issue at the boost clock, long ones at what the power cap allows: 1.16 against
    // 1.15 fitted on the H100, 1.17 and 1.24 on the H200, 1.00 and 1.03 on the A100; on the B200,
    // 1.17 and 1.2 to 1.5, the cap explains half. Changes of a device come on top in time().
    const AcceleratorConfig& sold = accelerator.sold ? *accelerator.sold : accelerator;
    const Activity product = long_product(sold, precision);
    const double issued = product.matrix / (matrix_peak(sold, precision) * sold.dies);
    const double throttle = product_slowdown(sold, precision) - 1;
    const auto dram = dram_efficiency(accelerator.memory);
    // Two copies of what all units read are what fitted devices keep.
    return {1.6,
            dram ? 0.9 * dram->read : 0.84,
            std::min(0.6, 1.2 / cache_copies(accelerator)),
            1.3,
            std::clamp(issued, 0.2, 1.1),
            std::clamp(throttle, 5e-4, 1.5),
            1000,
            0.65 * std::max(0.5, element_bytes(precision)),
            1.0 + far_wait_us(accelerator),
            std::clamp(1.3 * 32768 * units / memory, 0.1, 5.0),
            0.6,
            0.4,
            2.5,
            0.4,
            0.4,
            1.2,
            0.05,
            1.0};
  }

  KernelTime time(const Kernel& kernel, const AcceleratorConfig& accelerator,
                  const double* values) const override {
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

  std::optional<ResidualPoint> residual_point(const Kernel& kernel, const AcceleratorConfig& /*on*/,
                                              const double* /*values*/) const override {
    // Scales by which errors stay alike: cross-validated on fitted rows of H200, others by a factor
    // of 1.5 change the error by some 0.1 % at most. Rows of odd length are not aligned: libraries
    // take other kernels for them once they have more than one tile's worth.
    const auto doublings = [](std::int64_t size) {
      return std::log2(static_cast<double>(std::max<std::int64_t>(1, size)));
    };
    if (kernel.weights != WeightFormat{} || kernel.tile != std::array<std::int64_t, 2>{} ||
        kernel.cluster > 0)
      return std::nullopt;  // tables have dense products of one format, by the library's tiles
    const bool odd = kernel.m > 17 && kernel.m % 2 == 1;
    return ResidualPoint{
        0,
        {0.5 * doublings(kernel.m), 0.5 * doublings(kernel.n), 0.3 * doublings(kernel.k),
         odd ? 0.15 : 0, 0.5 * doublings(kernel.batch)}};
  }

  /// A step's latency follows the clock and the work of a unit and clock, an epilogue the memory
  /// bandwidth of a unit; the last wave counts as the schedules of a generation let it.
  std::vector<double> transferred(const std::vector<double>& values, const AcceleratorConfig& from,
                                  const AcceleratorConfig& to, Precision precision) const override {
    Kernel of;
    of.precision = precision;
    const UnitRates a = unit_rates(of, from), b = unit_rates(of, to);
    std::vector<double> moved = values;
    const auto at = [&moved](GemmParameter p) -> double& {
      return moved[static_cast<std::size_t>(p)];
    };
    at(kStepLatency) *= a.clock / b.clock * (a.flops / b.flops);
    at(kThrottle) = throttle_moved(from, to, precision, at(kThrottle));
    if (runs_block_scaled(of, from) && runs_block_scaled(of, to)) {
      // Results leave by way of the L2: H100 and H200 write at one rate.
      at(kWriteEfficiency) = std::min(
          1.0, at(kWriteEfficiency) * cache_rate(to) / cache_rate(from) * a.memory / b.memory);
    } else {
      at(kEpilogue) *= a.memory / b.memory;
    }
    // Fits have the parts of the L2 that they were made on in them.
    at(kFill) = std::max(0.02, at(kFill) + far_wait_us(to) - far_wait_us(from));
    at(kCacheShare) *= cache_copies(from) / cache_copies(to);
    if (a.issue != b.issue) at(kWaves) = product_overlap(b.issue).last_wave;
    return moved;
  }

  /// The tile and split that the closed form finds fastest, on persistent blocks. How far the
  /// library's choice is off that, on average, scales the result as in time().
  std::optional<BlockPlan> blocks(const Kernel& kernel, const AcceleratorConfig& accelerator,
                                  const double* values) const override {
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
};

const RegisterTileFamily<GemmFamily> registered_gemm_tiles(
    KernelClass::kGemm,
    "products by tiles of the library's menu: waves of blocks on units, steps along the depth, "
    "splits of it");

}  // namespace
}  // namespace orrery
