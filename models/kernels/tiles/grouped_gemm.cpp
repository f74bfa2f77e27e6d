// SPDX-License-Identifier: Apache-2.0
#include "models/kernels/tiles/grouped_gemm.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <limits>

#include "sim/machine/kernel_model.h"

namespace orrery {
namespace {

enum Parameter : std::size_t {
  kLaunch,            ///< us
  kMemoryEfficiency,  ///< share of the memory bandwidth
  kCacheShare,        ///< of the L2 that holds weights and rows from launch to launch
  kEfficiency,        ///< share of the matrix peak of a short product
  kThrottle,          ///< how much longer a long product takes under the power limit
  kThrottleTime,      ///< us of ideal time after which the power limit acts
  kLoad,              ///< bytes that a unit loads into its shared memory in a clock
  kStepLatency,       ///< ns for each byte of depth, however small the tile
  kFill,              ///< us until the first tile computes
  kEpilogue,          ///< us to write out 128 x 128 results
  kOverlapLoss,       ///< share of the shorter of main loop and epilogue that is not hidden
  kWaves,     ///< 1: a last wave takes as long as a full one, 0: as long as its tiles fill it
  kTail,      ///< the same for streaming from memory
  kReread,    ///< share of the weights that come from memory again for further blocks of an expert
  kExponent,  ///< p of computing beside streaming
  kExpert,    ///< us for each expert of the rank, active or not
  kInputs,    ///< 16-bit passes over the inputs beside the kernels of the graph (quantising, ...)
  kOutputs,   ///< the same over the outputs
  kSortCopies,   ///< ns to sort a copy by its expert
  kSortChoices,  ///< ns for each expert that a token may choose
};

/// Height is of token rows, the index that of ExpertLoad::kHeights; width of features.
struct Tile {
  std::size_t height;
  double width;
};
/// TensorRT-LLM's tiles for grouped products (cutlass_heuristic.cpp, SM90): features stand in the
/// rows of the instruction, so tokens may be as few as 16.
constexpr std::array<Tile, 6> kMenu = {
    {{0, 128}, {2, 128}, {3, 128}, {4, 128}, {5, 128}, {4, 256}}};
/// Profiled tiles this much slower than the fastest still count a third: profiles are noisy.
constexpr double kChoice = 0.01;
constexpr double kLeastWeight = 1e-3;
constexpr double kStepBytes = 128;  ///< of the summed dimension that a step takes

/// A device as tiles see it; us and bytes.
struct Device {
  double units = 0, ideal_rate = 0, memory = 0, cache = 0, unit_load = 0;
};

/// One product and the rows of its experts.
struct Product {
  double n = 0, k = 0, element = 2;
  double active = 1, rows = 1, more_bytes = 0;
  double rate = 0;  ///< FLOP/us of a unit
};

double height_of(std::size_t index) { return ExpertLoad::kHeights[index]; }

/// a^p + b^p, the p-th root of it.
double p_norm(double a, double b, double p) {
  const double most = std::max(a, b);
  return most > 0 ? most * std::pow(1 + std::pow(std::min(a, b) / most, p), 1 / p) : 0;
}

/// Share of `bytes` that an L2 of that size does not hold from one launch to the next.
double missing(double bytes, double cache) {
  if (!(cache > 0)) return 1;
  const double ratio = cache / std::max(1.0, bytes), r2 = ratio * ratio;
  return 1 / (1 + r2 * r2);
}

Device device_of(const AcceleratorConfig& a, Precision precision, const double* v) {
  Device d;
  d.units = static_cast<double>(a.compute.units.value) / a.dies;
  d.ideal_rate = matrix_peak(a, precision).base() / 1e6;
  d.memory = a.memory.bandwidth.value.base() / a.dies / 1e6;
  d.cache = a.cache ? v[kCacheShare] * a.cache->capacity.value.base() / a.dies : 0;
  d.unit_load = v[kLoad] * a.compute.clock.value.base() / 1e6;
  return d;
}

/// Of kernels that do not say how their rows are dealt out: evenly.
ExpertLoad load_of(const Kernel& kernel) {
  if (kernel.load.active > 0) return kernel.load;
  const auto batch = static_cast<double>(std::max<std::int64_t>(1, kernel.batch));
  return even_load(batch, batch * static_cast<double>(kernel.m), batch);
}

Product product_of(const Kernel& kernel, const ExpertLoad& load, const Device& d, const double* v) {
  Product p;
  p.n = static_cast<double>(kernel.n);
  p.k = static_cast<double>(kernel.k);
  // A scale of 8 bits for every 16 elements of nvfp4.
  p.element = kernel.precision == Precision::kNvfp4 ? 0.5625 : element_bytes(kernel.precision);
  p.active = load.active;
  p.rows = std::max(1e-6, load.rows);
  const double moved = p.active * p.n * p.k * p.element + p.rows * (p.k * p.element + p.n * 2);
  p.more_bytes = std::max(0.0, (kernel.read + kernel.written).base() - moved);
  const double ideal = 2 * p.rows * p.n * p.k / d.ideal_rate;
  p.rate = d.ideal_rate / d.units * v[kEfficiency] /
           (1 + v[kThrottle] * (1 - std::exp(-ideal / v[kThrottleTime])));
  return p;
}

struct CandidateTime {
  double body = 0, memory = 0;
};

/// Time of the product in tiles of `height` by `width`, the rows of its experts filling `blocks`.
CandidateTime candidate(const Product& p, const Device& d, double height, double width,
                        double blocks, const double* v) {
  const double step_depth = kStepBytes / p.element;
  const double matrix = 2 * height * width * step_depth / p.rate;
  const double rows = std::min(height, p.rows / p.active);
  const double load = (rows + std::min(width, p.n)) * kStepBytes / d.unit_load;
  const double latency = v[kStepLatency] * 1e-3 * kStepBytes;
  const double step =
      std::cbrt(matrix * matrix * matrix + load * load * load + latency * latency * latency);
  const double loop = std::ceil(p.k / step_depth) * step;
  const double epilogue = v[kEpilogue] * height * width / 16384;
  const double waves = blocks * std::ceil(p.n / width) / d.units;
  const double whole = std::ceil(waves);
  const double counted = std::max(1.0, v[kWaves] * whole + (1 - v[kWaves]) * waves);
  const double steady = std::max(loop, epilogue) + v[kOverlapLoss] * std::min(loop, epilogue);
  const double compute = loop + epilogue + (counted - 1) * steady;
  const double weights = p.active * p.n * p.k * p.element;
  const double moved = p.rows * (p.k * p.element + p.n * 2);
  const double again = v[kReread] * weights * std::max(0.0, blocks / p.active - 1);
  const double bytes = weights * missing(weights + moved, d.cache) + again +
                       moved * missing(moved, d.cache) + p.more_bytes;
  const double tail = waves > 1 ? 1 - v[kTail] + v[kTail] * whole / waves : 1;
  CandidateTime time;
  time.memory = bytes * tail / (d.memory * v[kMemoryEfficiency]);
  time.body = v[kFill] + p_norm(compute, time.memory, v[kExponent]);
  return time;
}

/// Blocks of that height where rows are dealt out at random, `expected` to each of `experts`:
/// beyond the first, half a block is empty on average.
double random_blocks(double experts, double expected, double height) {
  return experts * (1 - std::exp(-expected)) * std::max(1.0, expected / height + 0.5);
}

/// The profiled tile: the fastest of the menu for rows dealt out at random, as many as a power of
/// two of tokens gives.
CandidateTime profiled(const Product& p, const Device& d, const ExpertLoad& load, const double* v) {
  const double expected = std::exp2(std::floor(std::log2(std::max(1e-6, load.expected))));
  Product profile = p;
  profile.active = load.experts * (1 - std::exp(-expected));
  profile.rows = load.experts * expected;
  std::array<double, kMenu.size()> times{};
  double best = std::numeric_limits<double>::infinity();
  for (std::size_t i = 0; i < kMenu.size(); ++i) {
    const double height = height_of(kMenu[i].height);
    times[i] = candidate(profile, d, height, kMenu[i].width,
                         random_blocks(load.experts, expected, height), v)
                   .body;
    best = std::min(best, times[i]);
  }
  CandidateTime sum;
  double weights = 0;
  for (std::size_t i = 0; i < kMenu.size(); ++i) {
    const double weight = std::exp(-(times[i] / best - 1) / kChoice);
    if (weight < kLeastWeight) continue;
    const Tile& tile = kMenu[i];
    const CandidateTime time =
        candidate(p, d, height_of(tile.height), tile.width, load.blocks[tile.height], v);
    weights += weight;
    sum.body += weight * time.body;
    sum.memory += weight * time.memory;
  }
  return {sum.body / weights, sum.memory / weights};
}

/// Index of the smallest height that holds so many rows.
std::size_t index_of(double height) {
  std::size_t i = 0;
  while (i + 1 < ExpertLoad::kHeights.size() && height_of(i) < height) ++i;
  return i;
}

/// DeepGEMM's tile (get_best_gemm_config): fewest waves, then the fullest last wave, then the
/// narrowest. Below 32 expected rows tokens and features change places.
CandidateTime by_rule(const Product& p, const Device& d, const ExpertLoad& load, const double* v) {
  constexpr double kSwap = 32, kLow = 64, kHigh = 128;
  const double expected = std::max(1.0, std::ceil(load.expected));
  const bool swapped = expected < kSwap;
  const double block = !swapped && expected <= kLow ? kLow : kHigh;
  const double fixed = std::ceil((swapped ? p.n : expected) / block);
  double best = kHigh, best_waves = std::numeric_limits<double>::infinity(), best_last = 0;
  for (double side = 16; side <= kHigh; side += 8) {
    const double tiles = fixed * std::ceil((swapped ? expected : p.n) / side) * load.experts;
    const double waves = std::ceil(tiles / d.units);
    const double last = tiles - (waves - 1) * d.units;
    if (waves > best_waves || (waves == best_waves && last <= best_last)) continue;
    best = side;
    best_waves = waves;
    best_last = last;
  }
  const std::size_t index = index_of(swapped ? best : block);
  return candidate(p, d, swapped ? best : block, swapped ? block : best, load.blocks[index], v);
}

}  // namespace

const std::vector<ParameterInfo>& GroupedGemmFamily::parameters() const {
  static const std::vector<ParameterInfo> table = {
      {"launch", "us", 0.1, 1000},    {"memory_efficiency", "1", 0.3, 1},
      {"cache_share", "1", 0.01, 5},  {"matrix_efficiency", "1", 0.1, 1.1},
      {"throttle", "1", 5e-4, 1.5},   {"throttle_time", "us", 10, 20000},
      {"load", "B/clk", 8, 512},      {"step_latency", "ns", 0.02, 8},
      {"fill", "us", 0.02, 10},       {"epilogue", "us", 0.02, 8},
      {"overlap_loss", "1", 0.01, 1}, {"waves", "1", 2e-3, 1},
      {"tail", "1", 2e-3, 1},         {"reread", "1", 2e-3, 1},
      {"exponent", "1", 1, 16},       {"expert", "us", 1e-3, 1},
      {"inputs", "1", 0.01, 60},      {"outputs", "1", 0.01, 60},
      {"sort_copies", "ns", 1e-3, 5}, {"sort_choices", "ns", 1e-4, 1},
  };
  return table;
}

std::vector<double> GroupedGemmFamily::priors(const AcceleratorConfig& accelerator,
                                              Precision precision) const {
  // Fitted on Hopper's tables, rounded; the epilogue drains at a unit's share of the memory.
  const double units = static_cast<double>(accelerator.compute.units.value) / accelerator.dies;
  const double memory = accelerator.memory.bandwidth.value.base() / accelerator.dies / 1e6;
  const bool scaled = precision == Precision::kFp8Block;
  return {4.3,
          0.97,
          scaled ? 0.2 : 0.05,
          1.0,
          scaled ? 0.7 : 0.2,
          2000,
          100,
          element_bytes(precision) < 2 && !scaled ? 0.3 : 1.0,
          1.0,
          std::clamp(3.9 * 32768 * units / memory, 0.1, 5.0),
          0.3,
          0.9,
          0.3,
          0.2,
          1.6,
          scaled ? 0.14 : 0.035,
          scaled ? 12.0 : 0.05,
          0.02,
          0.2,
          0.005};
}

KernelTime GroupedGemmFamily::time(const Kernel& kernel, const AcceleratorConfig& accelerator,
                                   const double* v) const {
  const Device d = device_of(accelerator, kernel.precision, v);
  const ExpertLoad load = load_of(kernel);
  const Product p = product_of(kernel, load, d, v);
  const CandidateTime product =
      kernel.precision == Precision::kFp8Block ? by_rule(p, d, load, v) : profiled(p, d, load, v);
  const double passes = 2 * p.rows * (v[kInputs] * p.k + v[kOutputs] * p.n) / d.memory;
  const double sorting = (v[kSortCopies] * load.copies + v[kSortChoices] * load.choices) * 1e-3;
  const double body = product.body + passes + sorting + v[kExpert] * load.experts;
  KernelTime time;
  time.launch_us = v[kLaunch];
  time.total_us = time.launch_us + body;
  time.bound = time.launch_us > body                  ? Bound::kLatency
               : product.memory + passes > 0.5 * body ? Bound::kMemory
                                                      : Bound::kTensor;
  return time;
}

std::optional<ResidualPoint> GroupedGemmFamily::residual_point(
    const Kernel& kernel, const AcceleratorConfig& /*on*/) const {
  const ExpertLoad load = load_of(kernel);
  const auto coordinate = [](double value) { return 0.5 * std::log2(std::max(1e-3, value)); };
  ResidualPoint point;
  point.part = load.copies > 0 ? 0 : 1;  // into the experts' width and back, other tiles
  point.at = {coordinate(load.expected),
              coordinate(load.rows / load.active),
              coordinate(load.experts),
              coordinate(static_cast<double>(kernel.n)),
              coordinate(static_cast<double>(kernel.k)),
              coordinate(load.blocks[0] * ExpertLoad::kHeights[0] / std::max(1.0, load.rows))};
  return point;
}

}  // namespace orrery
