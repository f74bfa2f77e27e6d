// SPDX-License-Identifier: Apache-2.0
#include "models/kernels/tiles/grouped_product.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <limits>

#include "models/kernels/device/cache_parts.h"
#include "sim/machine/kernel_model.h"

namespace orrery {
namespace {

using enum GroupedParameter;

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

GroupedDevice device_of(const AcceleratorConfig& a, Precision precision, GroupedValues v) {
  GroupedDevice d;
  d.units = static_cast<double>(a.compute.units.value) / a.dies;
  d.ideal_rate = matrix_peak(a, precision).base() / 1e6;
  d.memory = memory_rate(a);
  d.hiding = load_hiding(a);
  d.cache = a.cache ? v[kCacheShare] * a.cache->capacity.value.base() / a.dies : 0;
  d.unit_load = v[kLoad] * a.compute.clock.value.base() / 1e6;
  return d;
}

GroupedProduct product_of(const Kernel& kernel, const ExpertLoad& load, const GroupedDevice& d,
                          GroupedValues v) {
  GroupedProduct p;
  p.n = static_cast<double>(kernel.n);
  p.k = static_cast<double>(kernel.k);
  // A scale of 8 bits for every 16 elements of nvfp4.
  p.element = kernel.precision == Precision::kNvfp4 ? 0.5625 : element_bytes(kernel.precision);
  p.weight =
      p.element - element_bytes(kernel.precision) + weight_bytes(kernel.precision, kernel.weights);
  p.active = load.active;
  p.back = load.copies == 0;
  p.rows = std::max(1e-6, load.rows);
  const double moved = p.active * p.n * p.k * p.weight + p.rows * (p.k * p.element + p.n * 2);
  p.reuse = kernel.reuse.base();
  p.more_bytes = std::max(0.0, (kernel.read + kernel.written).base() - moved);
  const double ideal = 2 * p.rows * p.n * p.k / d.ideal_rate;
  p.rate = d.ideal_rate / d.units * v[kEfficiency] /
           (1 + v[kThrottle] * (1 - std::exp(-ideal / v[kThrottleTime])));
  return p;
}

}  // namespace

ExpertLoad grouped_load(const Kernel& kernel) {
  if (kernel.load.active > 0) return kernel.load;
  const auto batch = static_cast<double>(std::max<std::int64_t>(1, kernel.batch));
  return even_load(batch, batch * static_cast<double>(kernel.m), batch);
}

/// @param rows of tokens that the tile loads
GroupedTile grouped_tile(const GroupedProduct& p, const GroupedDevice& d, double height,
                         double width, double rows, GroupedValues v) {
  const double step_depth = kGroupedStepBytes / p.element;
  GroupedTile t;
  t.matrix = 2 * height * width * step_depth / p.rate;
  t.load = (rows * p.element + std::min(width, p.n) * p.weight) * step_depth / d.unit_load;
  t.latency = v[kStepLatency] * 1e-3 * kGroupedStepBytes;
  const double overlapped = std::cbrt(t.matrix * t.matrix * t.matrix + t.load * t.load * t.load +
                                      t.latency * t.latency * t.latency);
  const double tiles = std::max(p.active, p.rows / height) * std::ceil(p.n / width);
  const double resident =
      d.hiding.resident((height + width) * kGroupedStepBytes, height * width, tiles / d.units);
  const double step = d.hiding.step_us(overlapped, t.matrix + t.load + t.latency, resident);
  const double steps = std::ceil(p.k / step_depth);
  t.loop = steps * step;
  t.exposed = steps * (step - overlapped);
  t.epilogue = v[p.back ? kDownEpilogue : kEpilogue] * height * width / 16384;
  t.steady =
      std::max(t.loop, t.epilogue) + v[kOverlapLoss] * std::min(t.loop, t.epilogue) + v[kTile];
  return t;
}

GroupedTraffic grouped_traffic(const GroupedProduct& p, const GroupedDevice& d, double blocks,
                               GroupedValues v) {
  const double weights = p.active * p.n * p.k * p.weight;
  const double moved = p.rows * (p.k * p.element + p.n * 2);
  const double again = v[kReread] * weights * std::max(0.0, blocks / p.active - 1);
  GroupedTraffic t;
  t.weights = weights * missing(p.reuse > 0 ? p.reuse : weights + moved, d.cache) + again;
  t.rows = moved * missing(moved, d.cache);
  t.all = t.weights + t.rows + p.more_bytes;
  return t;
}

namespace {

/// How much longer streaming takes for units that have run out of tiles. On more units than were
/// fitted a persistent kernel may leave some of them alone, as DeepGEMM does, so that all are done
/// at once: where a number of units between fills its waves nothing is lost.
double tail_of(double tiles, const GroupedDevice& d, GroupedValues v) {
  if (tiles <= d.units) return 1;
  const double waves = tiles / v[kUnits];
  if (std::floor(waves) >= std::ceil(tiles / d.units)) return 1;
  return waves > 1 ? 1 - v[kTail] + v[kTail] * std::ceil(waves) / waves : 1;
}

/// Time of the product in tiles of `height` by `width`, the rows of its experts filling `blocks`.
GroupedTime candidate(const GroupedProduct& p, const GroupedDevice& d, double height, double width,
                      double blocks, GroupedValues v) {
  const GroupedTile t = grouped_tile(p, d, height, width, std::min(height, p.rows / p.active), v);
  const double waves = blocks * std::ceil(p.n / width) / d.units;
  const double whole = std::ceil(waves);
  const double counted = std::max(1.0, v[kWaves] * whole + (1 - v[kWaves]) * waves);
  const double compute = t.loop + t.epilogue + (counted - 1) * t.steady;
  const double tail = tail_of(blocks * std::ceil(p.n / width), d, v);
  GroupedTime time;
  time.memory = grouped_traffic(p, d, blocks, v).all * tail / (d.memory * v[kMemoryEfficiency]);
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
GroupedChoice profiled(const GroupedProduct& p, const GroupedDevice& d, const ExpertLoad& load,
                       GroupedValues v) {
  const double expected = std::exp2(std::floor(std::log2(std::max(1e-6, load.expected))));
  GroupedProduct profile = p;
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
  GroupedChoice choice;
  GroupedTime& sum = choice.expected;
  double weights = 0;
  for (std::size_t i = 0; i < kMenu.size(); ++i) {
    const double weight = std::exp(-(times[i] / best - 1) / kChoice);
    if (weight < kLeastWeight) continue;
    const Tile& tile = kMenu[i];
    const GroupedTime time =
        candidate(p, d, height_of(tile.height), tile.width, load.blocks[tile.height], v);
    weights += weight;
    sum.body += weight * time.body;
    sum.memory += weight * time.memory;
    if (times[i] > best) continue;
    choice.height = height_of(tile.height);
    choice.width = tile.width;
    choice.blocks = load.blocks[tile.height];
    choice.of_tile = time;
  }
  sum.body /= weights;
  sum.memory /= weights;
  return choice;
}

/// Index of the smallest height that holds so many rows.
std::size_t index_of(double height) {
  std::size_t i = 0;
  while (i + 1 < ExpertLoad::kHeights.size() && height_of(i) < height) ++i;
  return i;
}

/// DeepGEMM's tile (get_best_gemm_config): fewest waves, then the fullest last wave, then the
/// narrowest. Below 32 expected rows tokens and features change places.
GroupedChoice by_rule(const GroupedProduct& p, const GroupedDevice& d, const ExpertLoad& load,
                      GroupedValues v) {
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
  GroupedChoice choice;
  choice.height = swapped ? best : block;
  choice.width = swapped ? block : best;
  choice.blocks = load.blocks[index_of(choice.height)];
  choice.of_tile = candidate(p, d, choice.height, choice.width, choice.blocks, v);
  choice.expected = choice.of_tile;
  return choice;
}

/// Before the first product of a layer, copies are put in the order of their experts.
double sorting_us(const ExpertLoad& load, GroupedValues v) {
  /// Tokens that TensorRT-LLM sorts in one block (fusedBuildExpertMapsSortFirstToken).
  constexpr double kOneBlock = 256;
  const double experts = v[kExpert] * load.experts;
  if (load.copies == 0) return experts;
  const double passes = load.choices > kOneBlock * load.experts ? v[kSortPasses] : 0;
  return experts + passes +
         1e-3 * (v[kSortCopies] * load.copies + v[kSortChoices] * load.choices +
                 v[kSortRows] * load.rows);
}

}  // namespace

GroupedJob grouped_job(const Kernel& kernel, const AcceleratorConfig& accelerator,
                       GroupedValues v) {
  GroupedJob job;
  const GroupedDevice& d = job.device = device_of(accelerator, kernel.precision, v);
  const ExpertLoad& load = job.load = grouped_load(kernel);
  const GroupedProduct& p = job.product = product_of(kernel, load, d, v);
  // DeepGEMM is Hopper's; on others a menu is profiled for every format.
  const bool rule = kernel.precision == Precision::kFp8Block &&
                    matrix_issue(accelerator) == MatrixIssue::kWarpgroup;
  const auto chosen = [&](const GroupedDevice& on) {
    return rule ? by_rule(p, on, load, v) : profiled(p, on, load, v);
  };
  job.choice = chosen(d);
  if (!d.hiding.async_copy) {
    // What suits a device without asynchronous copies is not better chosen than for others.
    GroupedDevice overlapped = d;
    overlapped.hiding.async_copy = true;
    const GroupedTime other = chosen(overlapped).expected;
    if (other.body > job.choice.expected.body) job.choice.expected = other;
  }
  job.passes = 2 * p.rows * (v[kInputs] * p.k + v[kOutputs] * p.n) / d.memory;
  job.sorting = sorting_us(load, v);
  return job;
}

}  // namespace orrery
