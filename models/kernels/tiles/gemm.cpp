// SPDX-License-Identifier: Apache-2.0
#include "models/kernels/tiles/gemm.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "models/kernels/tiles/block_scaled_gemm.h"
#include "models/kernels/tiles/matrix_product.h"
#include "models/kernels/tiles/tile_menu.h"

namespace orrery {
namespace {

using enum GemmParameter;

constexpr double kMostSplits = 32;
constexpr double kStepDepth = 64;  ///< elements of the summed dimension that a step takes
/// Candidates this much slower than the fastest still count a third: libraries choose by estimates.
constexpr double kChoice = 0.1;

double fourth(double x) { return x * x * x * x; }

/// A step of the main loop: a p-norm, p = 4, 3, 2 from Ampere to Blackwell, as instructions, loads
/// and latencies overlap less and less in time that gets shorter. Roots instead of pow(): this is
/// the innermost loop.
double joined(double a, double b, double c, int rows) {
  if (rows >= 128) return std::sqrt(a * a + b * b + c * c);
  if (rows >= 64) return std::cbrt(a * a * a + b * b * b + c * c * c);
  return std::sqrt(std::sqrt(fourth(a) + fourth(b) + fourth(c)));
}

/// Computing beside streaming from memory: p = 4 on Hopper, 3 before and after.
double beside(double a, double b, int rows) {
  if (rows == 64) return std::sqrt(std::sqrt(fourth(a) + fourth(b)));
  return std::cbrt(a * a * a + b * b * b);
}

/// What all candidates share.
struct Job {
  MatrixProduct product;
  TileDevice device;
  double rate = 0, memory_us = 0, most_splits = 1;
};

Job job_of(const Kernel& kernel, const AcceleratorConfig& accelerator, GemmValues v) {
  Job job;
  job.device = tile_device(accelerator, kernel);
  job.product = matrix_product(kernel, job.device);
  job.rate = unit_rate(job.product, job.device, v);
  job.memory_us = memory_us(job.product, kernel, job.device, v, 1);
  const bool scaled =
      kernel.precision == Precision::kNvfp4 || kernel.precision == Precision::kFp8Block;
  if (!scaled) job.most_splits = std::clamp(job.product.k / 256, 1.0, kMostSplits);
  return job;
}

double tiles_of(const MatrixProduct& p, Tile tile) {
  return p.batch * std::ceil(p.m / tile.rows) * std::ceil(p.n / tile.columns);
}

/// Time of the product with one tile and split.
double candidate(const Job& job, Tile tile, double splits, GemmValues v) {
  const MatrixProduct& p = job.product;
  const TileDevice& d = job.device;
  const double depth = kStepDepth * std::ceil(std::ceil(p.k / splits) / kStepDepth);
  const double tiles = tiles_of(p, tile) * splits;
  const double rows = std::min(tile.rows, p.m), columns = std::min(tile.columns, p.n);
  double matrix = 2 * tile.rows * tile.columns / job.rate;
  if (p.widening_us > 0) matrix = joined(matrix, columns * p.widening_us, 0, d.instruction_rows);
  const double waves = counted_waves(tiles, d.units, v);
  const TileTraffic traffic = tile_traffic(rows, columns, 1, tile);
  const double load = (traffic.inputs * p.bytes.input + traffic.weights * p.bytes.weight) /
                      loading_rate(d, tiles / waves);
  const double loop = depth * joined(matrix, load, v[kStepLatency] * 1e-3, d.instruction_rows);
  const double epilogue = v[kEpilogue] * rows * columns / 16384;
  const double compute = tiles_us(loop, epilogue, waves, v);
  double time = beside(compute, job.memory_us, d.instruction_rows);
  if (splits > 1) {
    time +=
        v[kSplit] + v[kSplitTraffic] * 2 * splits * p.batch * p.m * p.n * 4 / (0.5 * d.cache_rate);
  }
  return time;
}

/// The library's choice among a menu, in microseconds.
double chosen(const Job& job, const TileMenu& menu, GemmValues v) {
  std::array<double, 2 * TileMenu::kMost> times{};
  std::size_t count = 0;
  double best = std::numeric_limits<double>::infinity();
  for (const Tile tile : menu) {
    const double splits = std::clamp(std::floor(job.device.units / tiles_of(job.product, tile)),
                                     1.0, job.most_splits);
    times[count++] = candidate(job, tile, 1, v);
    if (splits > 1) times[count++] = candidate(job, tile, splits, v);
    best = std::min({best, times[count - 1], times[count - (splits > 1 ? 2 : 1)]});
  }
  double weights = 0, sum = 0;
  for (std::size_t i = 0; i < count; ++i) {
    const double weight = std::exp(-(times[i] / best - 1) / kChoice);
    weights += weight;
    sum += weight * times[i];
  }
  return sum / weights;
}

/// What a data sheet says of one unit.
struct UnitRates {
  double clock = 0;   ///< 1/us
  double flops = 0;   ///< a clock
  double memory = 0;  ///< bytes/us
  int instruction_rows = 0;
};

UnitRates unit_rates(const Kernel& kernel, const AcceleratorConfig& accelerator) {
  const TileDevice d = tile_device(accelerator, kernel);
  const double clock = accelerator.compute.clock.value.base() / 1e6;
  return {clock, d.rate / d.units / clock, d.memory / d.units, d.instruction_rows};
}

/// What the last wave counts: as what its tiles fill where schedules are persistent (Hopper), as a
/// full one where clusters of two units start together (Blackwell). Read off fits of A100, H100,
/// H200 and B200.
double last_wave(int instruction_rows) {
  if (instruction_rows >= 128) return 1;
  return instruction_rows >= 64 ? 1e-3 : 0.8;
}

}  // namespace

const std::vector<ParameterInfo>& GemmFamily::parameters() const {
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

std::vector<double> GemmFamily::priors(const AcceleratorConfig& accelerator,
                                       Precision precision) const {
  // Regularities of the devices that have been fitted: the latency of a step follows the width of
  // the elements, the epilogue drains at a unit's share of the memory bandwidth.
  const double units = static_cast<double>(accelerator.compute.units.value) / accelerator.dies;
  const double memory = accelerator.memory.bandwidth.value.base() / accelerator.dies / 1e6;
  return {1.6,  0.84,
          0.6,  1.3,
          0.88, 0.15,
          1000, 0.65 * std::max(0.5, element_bytes(precision)),
          1.0,  std::clamp(1.3 * 32768 * units / memory, 0.1, 5.0),
          0.6,  0.4,
          2.5,  0.4,
          0.4,  1.2,
          0.05, 1.0};
}

KernelTime GemmFamily::time(const Kernel& kernel, const AcceleratorConfig& accelerator,
                            const double* values) const {
  const GemmValues v{values};
  if (runs_block_scaled(kernel, accelerator)) return block_scaled_time(kernel, accelerator, v);
  const Job job = job_of(kernel, accelerator, v);
  const double body = chosen(job, tile_menu(kernel, accelerator, job.product.bytes), v);
  return product_time(body, job.memory_us, v);
}

std::vector<double> GemmFamily::transferred(const std::vector<double>& values,
                                            const AcceleratorConfig& from,
                                            const AcceleratorConfig& to,
                                            Precision precision) const {
  Kernel of;
  of.precision = precision;
  const UnitRates a = unit_rates(of, from), b = unit_rates(of, to);
  std::vector<double> moved = values;
  const auto at = [&moved](GemmParameter p) -> double& {
    return moved[static_cast<std::size_t>(p)];
  };
  at(kStepLatency) *= a.clock / b.clock * (a.flops / b.flops);
  if (runs_block_scaled(of, from) && runs_block_scaled(of, to)) {
    // Results leave by way of the L2: H100 and H200 write at one rate.
    at(kWriteEfficiency) = std::min(
        1.0, at(kWriteEfficiency) * cache_rate(to) / cache_rate(from) * a.memory / b.memory);
  } else {
    at(kEpilogue) *= a.memory / b.memory;
  }
  if (a.instruction_rows != b.instruction_rows) at(kWaves) = last_wave(b.instruction_rows);
  return moved;
}

}  // namespace orrery
