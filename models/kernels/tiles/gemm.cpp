// SPDX-License-Identifier: Apache-2.0
#include "models/kernels/tiles/gemm.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <limits>

#include "models/kernels/dram.h"
#include "sim/machine/clock.h"
#include "sim/machine/kernel_model.h"

namespace orrery {
namespace {

enum Parameter : std::size_t {
  kLaunch,            ///< us
  kMemoryEfficiency,  ///< share of the memory bandwidth
  kCacheShare,        ///< of the L2 that holds operands from launch to launch
  kMemoryLatency,     ///< us that a product pays once when its operands come from memory
  kEfficiency,        ///< share of the matrix peak of a short product
  kThrottle,          ///< how much longer a long product takes under the power limit
  kThrottleTime,      ///< us of ideal time after which the power limit acts
  kStepLatency,       ///< ns for each element of the summed dimension, however small the tile
  kFill,              ///< us until the first step of a tile
  kEpilogue,          ///< us to write out 128 x 128 results
  kOverlapLoss,       ///< share of the shorter of main loop and epilogue that is not hidden
  kWaves,         ///< 1: a last wave takes as long as a full one, 0: as long as its tiles fill it
  kSplit,         ///< us of adding up a split product
  kSplitTraffic,  ///< of the ideal time of its partial sums in the L2
};

struct Tile {
  double rows, columns;  ///< of tokens, of features
};
constexpr std::array<Tile, 14> kMenu = {{{16, 64},
                                         {32, 64},
                                         {64, 64},
                                         {128, 64},
                                         {256, 64},
                                         {64, 128},
                                         {96, 128},
                                         {128, 128},
                                         {160, 128},
                                         {192, 128},
                                         {256, 128},
                                         {64, 256},
                                         {128, 256},
                                         {256, 256}}};
constexpr double kMostSplits = 32;
constexpr double kStepDepth = 64;  ///< elements of the summed dimension that a step takes
/// Candidates this much slower than the fastest still count a third: libraries choose by estimates.
constexpr double kChoice = 0.1;
/// Weights rotate over at most five copies where tables are measured; activations do not.
constexpr double kWeightCopies = 5;

/// A device as tiles see it; us and bytes.
struct Device {
  double units = 0, rate = 0, ideal_rate = 0;  ///< FLOP/us of a unit, of all units at the peak
  double memory = 0, cache = 0, cache_rate = 0, unit_load = 0;
  int instruction_rows = 64;
};

/// What a product needs beside its tiles.
struct Product {
  double batch = 1, m = 0, n = 0, k = 0, element = 2;
  double most_splits = kMostSplits;
  double memory_us = 0;
};

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

Device device_of(const AcceleratorConfig& a, Precision precision) {
  Device d;
  d.units = static_cast<double>(a.compute.units.value) / a.dies;
  d.ideal_rate = matrix_peak(a, precision).base() / 1e6;
  d.memory = a.memory.bandwidth.value.base() / a.dies / 1e6;
  d.cache = a.cache ? a.cache->capacity.value.base() / a.dies : 0;
  if (a.core && a.core->matrix_tile) d.instruction_rows = a.core->matrix_tile->rows;
  // 5,120 bytes a clock out of the L2 (NVIDIA A100 whitepaper); twice that where the chip is two
  // dies, an assumption. Multicast makes three of each byte on Hopper and later.
  const double clock = a.compute.clock.value.base() / 1e6;
  d.cache_rate = (d.instruction_rows >= 128 ? 10240 : 5120) * clock;
  d.unit_load = 400 * clock;
  return d;
}

/// Share of `bytes` that an L2 of that size does not hold from one launch to the next. Sharp: a
/// least-recently-used cache keeps nothing of a set that is a little too large.
double missing(double bytes, double cache) {
  if (!(cache > 0)) return 1;
  const double ratio = cache / bytes, r2 = ratio * ratio, r4 = r2 * r2;
  return 1 / (1 + r4 * r4 * r2);
}

Product product_of(const Kernel& kernel, const Device& d, const double* v) {
  Product p;
  p.batch = static_cast<double>(std::max<std::int64_t>(1, kernel.batch));
  p.m = static_cast<double>(kernel.m);
  p.n = static_cast<double>(kernel.n);
  p.k = static_cast<double>(kernel.k);
  // A scale of 8 bits for every 16 elements of nvfp4.
  p.element = kernel.precision == Precision::kNvfp4 ? 0.5625 : element_bytes(kernel.precision);
  const bool scaled =
      kernel.precision == Precision::kNvfp4 || kernel.precision == Precision::kFp8Block;
  p.most_splits = scaled ? 1 : std::clamp(p.k / 256, 1.0, kMostSplits);
  const double weights = p.batch * p.n * p.k * p.element;
  const double inputs = p.batch * p.m * p.k * p.element;
  const double outputs = p.batch * p.m * p.n * 2;
  const double cache = v[kCacheShare] * d.cache;
  const double from_memory = missing(kWeightCopies * weights + inputs + outputs, cache);
  const double activations = missing(inputs + outputs, cache);
  // What a kernel reads or writes beyond its operands, such as gradients that are added up.
  const double more =
      std::max(0.0, (kernel.read + kernel.written).base() - weights - inputs - outputs);
  p.memory_us =
      (weights * from_memory + inputs * activations + more) / (d.memory * v[kMemoryEfficiency]) +
      outputs * activations / d.memory + v[kMemoryLatency] * from_memory;
  return p;
}

/// Time of the product with one tile and split.
double candidate(const Product& p, const Device& d, double rate, Tile tile, double splits,
                 const double* v) {
  const double depth = kStepDepth * std::ceil(std::ceil(p.k / splits) / kStepDepth);
  const double tiles =
      p.batch * std::ceil(p.m / tile.rows) * std::ceil(p.n / tile.columns) * splits;
  const double active = std::min(tiles, d.units);
  const double rows = std::min(tile.rows, p.m), columns = std::min(tile.columns, p.n);
  const double matrix = 2 * tile.rows * tile.columns / rate;
  const double load =
      (rows + columns) * p.element / std::min(d.unit_load, 3 * d.cache_rate / active);
  const double loop = depth * joined(matrix, load, v[kStepLatency] * 1e-3, d.instruction_rows);
  const double epilogue = v[kEpilogue] * rows * columns / 16384;
  const double waves = tiles / d.units;
  const double counted = std::max(1.0, v[kWaves] * std::ceil(waves) + (1 - v[kWaves]) * waves);
  const double steady = std::max(loop, epilogue) + v[kOverlapLoss] * std::min(loop, epilogue);
  const double compute = v[kFill] + loop + epilogue + (counted - 1) * steady;
  double time = beside(compute, p.memory_us, d.instruction_rows);
  if (splits > 1) {
    time +=
        v[kSplit] + v[kSplitTraffic] * 2 * splits * p.batch * p.m * p.n * 4 / (0.5 * d.cache_rate);
  }
  return time;
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
  };
  return table;
}

std::vector<double> GemmFamily::priors(const AcceleratorConfig& accelerator,
                                       Precision precision) const {
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
  return {1.6,
          dram ? 0.9 * dram->read : 0.84,
          0.6,
          1.3,
          std::clamp(issued, 0.2, 1.1),
          std::clamp(throttle, 5e-4, 1.5),
          1000,
          0.65 * std::max(0.5, element_bytes(precision)),
          1.0,
          std::clamp(1.3 * 32768 * units / memory, 0.1, 5.0),
          0.6,
          0.4,
          2.5,
          0.4};
}

KernelTime GemmFamily::time(const Kernel& kernel, const AcceleratorConfig& accelerator,
                            const double* v) const {
  const Device d = device_of(accelerator, kernel.precision);
  const Product p = product_of(kernel, d, v);
  const double ideal = 2 * p.batch * p.m * p.n * p.k / d.ideal_rate;
  const double reached =
      throttle_reached(accelerator.power, ideal, 1 - std::exp(-ideal / v[kThrottleTime]));
  const double throttle = throttle_here(accelerator, kernel.precision, v[kThrottle]);
  const double rate = d.ideal_rate / d.units * v[kEfficiency] / (1 + throttle * reached);
  std::array<double, 2 * kMenu.size()> times{};
  std::size_t count = 0;
  double best = std::numeric_limits<double>::infinity();
  const std::size_t menu = d.instruction_rows >= 128 ? kMenu.size() : kMenu.size() - 1;
  for (std::size_t i = 0; i < menu; ++i) {
    const Tile tile = kMenu[i];
    const double tiles = p.batch * std::ceil(p.m / tile.rows) * std::ceil(p.n / tile.columns);
    const double splits = std::clamp(std::floor(d.units / tiles), 1.0, p.most_splits);
    times[count++] = candidate(p, d, rate, tile, 1, v);
    if (splits > 1) times[count++] = candidate(p, d, rate, tile, splits, v);
    best = std::min({best, times[count - 1], times[count - (splits > 1 ? 2 : 1)]});
  }
  double weights = 0, sum = 0;
  for (std::size_t i = 0; i < count; ++i) {
    const double weight = std::exp(-(times[i] / best - 1) / kChoice);
    weights += weight;
    sum += weight * times[i];
  }
  const double body = sum / weights;
  KernelTime time;
  time.launch_us = v[kLaunch];
  time.total_us = time.launch_us + body;
  time.bound = time.launch_us > body      ? Bound::kLaunch
               : p.memory_us > 0.7 * body ? Bound::kMemory
                                          : Bound::kCompute;
  return time;
}

}  // namespace orrery
