// SPDX-License-Identifier: Apache-2.0
#include "models/kernels/tiles/gemm_choice.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>

namespace orrery {
namespace {

using enum GemmParameter;

constexpr double kMostSplits = 32;
constexpr double kStepDepth = 64;  ///< elements of the summed dimension that a step takes
/// Candidates this much slower than the fastest still count a third: libraries choose by estimates.
constexpr double kChoice = 0.1;
/// Candidates this much slower weigh less than 10^-13, and are left out.
constexpr double kHopeless = 4;

double fourth(double x) { return x * x * x * x; }

/// The cube root of a positive number, to 1e-14: two of Halley's steps after a third of the
/// exponent (Kahan, Computing a Real Cube Root, 1991). A third of the time of std::cbrt, inlined.
inline double cube_root(double x) {
  constexpr std::uint64_t kThirdOfBias = 0x2a9f7893782da1ce;
  auto y = std::bit_cast<double>(std::bit_cast<std::uint64_t>(x) / 3 + kThirdOfBias);
  for (int step = 0; step < 2; ++step) {
    const double cube = y * y * y;
    y *= (cube + 2 * x) / (2 * cube + x);
  }
  return y;
}

/// The p-norm of three times, by roots instead of pow(): this is the innermost loop.
template <int p>
inline double norm(double a, double b, double c = 0) {
  static_assert(p >= 2 && p <= 4);
  if constexpr (p == 2) return std::sqrt(a * a + b * b + c * c);
  if constexpr (p == 3) return cube_root(a * a * a + b * b * b + c * c * c);
  if constexpr (p == 4) return std::sqrt(std::sqrt(fourth(a) + fourth(b) + fourth(c)));
}

/// p-norms with `step` and `stream` of a ProductOverlap as constants: us of a step of the main loop
/// by its parts, and us of computing beside streaming from memory.
template <int step, int stream>
struct Norms {
  static double joined(double a, double b, double c) { return norm<step>(a, b, c); }
  static double beside(double a, double b) { return norm<stream>(a, b); }
};

/// @param call is given the Norms of the overlap
template <class Call>
auto with_norms(const ProductOverlap& overlap, Call call) {
  const auto is = [&](int step, int stream) {
    return overlap.step == step && overlap.stream == stream;
  };
  if (is(2, 3)) return call(Norms<2, 3>());
  if (is(3, 4)) return call(Norms<3, 4>());
  return call(Norms<4, 3>());
}

/// Elements of `depth` rounded up to whole steps.
double steps(double depth) { return kStepDepth * std::ceil(depth / kStepDepth); }

/// Ways to run a product, priced part by part in arrays: their roots and divisions, which are what
/// takes time, are then on their way at once.
struct Ways {
  using Values = std::array<double, 2 * TileMenu::kMost>;

  std::size_t count = 0;
  std::array<const Tile*, 2 * TileMenu::kMost> tile;
  Values tiles, depth, waves, matrix, load, loop, epilogue, steady, split, time;
  Values exposed{};

  GemmCandidate operator[](std::size_t i) const {
    return {*tile[i], tiles[i],   depth[i],    waves[i],  matrix[i], load[i],
            loop[i],  exposed[i], epilogue[i], steady[i], split[i],  time[i]};
  }
};

/// Lists the tiles of the menu as ways: each without splits and, where that leaves units idle, also
/// with as many splits as find a unit.
template <class Norm>
void list_ways(const GemmJob& job, const TileMenu& menu, GemmValues v, Ways& ways) {
  const MatrixProduct& p = job.product;
  const double units = job.device.units;
  Tile before{};
  double down = 0, across = 0;  // tiles along either dimension
  std::size_t i = 0;
  for (const Tile& tile : menu) {
    if (tile.rows != before.rows) down = std::ceil(p.m / tile.rows);
    if (tile.columns != before.columns) across = std::ceil(p.n / tile.columns);
    before = tile;
    const double rows = std::min(tile.rows, p.m), columns = std::min(tile.columns, p.n);
    const double bytes = tile_bytes(p, tile);
    const double epilogue = v[kEpilogue] * rows * columns * (1.0 / 16384);
    double matrix = 2 * tile.rows * tile.columns * job.matrix;
    if (p.widening_us > 0) matrix = Norm::joined(matrix, columns * p.widening_us, 0);
    const auto add = [&](double tiles, double depth, double split) {
      const double waves = tiles * job.per_unit > 1 ? counted_waves(tiles, units, v) : 1;
      ways.tile[i] = &tile;
      ways.tiles[i] = tiles;
      ways.depth[i] = depth;
      ways.waves[i] = waves;
      ways.matrix[i] = matrix;
      ways.load[i] = bytes * std::max(job.load, job.crowd * (tiles / waves));
      ways.epilogue[i] = epilogue;
      ways.split[i++] = split;
    };
    const double tiles = p.batch * down * across;
    add(tiles, job.depth, 0);
    if (2 * tiles > units || job.most_splits <= 1) continue;
    const double splits = std::min(std::floor(units / tiles), job.most_splits);
    add(tiles * splits, steps(std::ceil(p.k / splits)), job.split + job.split_traffic * splits);
  }
  ways.count = i;
}

/// Lengthens main loops by the loads that the other blocks of the unit do not hide.
void expose_loads(const GemmJob& job, Ways& ways) {
  const LoadHiding& hiding = job.device.hiding;
  for (std::size_t i = 0; i < ways.count; ++i) {
    const Tile& tile = *ways.tile[i];
    const double blocks = hiding.resident(tile_bytes(job.product, tile) * kStepDepth,
                                          tile.rows * tile.columns, ways.tiles[i] * job.per_unit);
    const double serial = ways.depth[i] * (ways.matrix[i] + ways.load[i] + job.step);
    ways.exposed[i] = hiding.step_us(ways.loop[i], serial, blocks) - ways.loop[i];
    ways.loop[i] += ways.exposed[i];
  }
}

/// Sets the times of all ways that are listed.
template <class Norm>
void price(const GemmJob& job, GemmValues v, Ways& ways) {
  for (std::size_t i = 0; i < ways.count; ++i)
    ways.loop[i] = ways.depth[i] * Norm::joined(ways.matrix[i], ways.load[i], job.step);
  if (!job.device.hiding.async_copy) expose_loads(job, ways);
  for (std::size_t i = 0; i < ways.count; ++i) {
    ways.steady[i] = steady_us(ways.loop[i], ways.epilogue[i], v);
    const double compute =
        v[kFill] + ways.loop[i] + ways.epilogue[i] + (ways.waves[i] - 1) * ways.steady[i];
    ways.time[i] = Norm::beside(compute, job.streaming.time_us) + ways.split[i];
  }
}

/// us that the library's choice is expected to take: the mean of the times of all ways, the faster
/// the heavier.
double mean_choice(const Ways& ways, double best) {
  double weights = 0, sum = 0;
  for (std::size_t i = 0; i < ways.count; ++i) {
    const double time = ways.time[i];
    if (time > kHopeless * best) continue;
    const double weight = std::exp((1 - time / best) / kChoice);
    weights += weight;
    sum += weight * time;
  }
  return sum / weights;
}

}  // namespace

GemmJob gemm_job(const Kernel& kernel, const AcceleratorConfig& accelerator, GemmValues v) {
  GemmJob job;
  const TileDevice& d = job.device = tile_device(accelerator, kernel);
  const MatrixProduct& p = job.product = matrix_product(kernel, job.device);
  job.streaming = streaming(p, kernel, d, v, 1);
  const bool scaled =
      kernel.precision == Precision::kNvfp4 || kernel.precision == Precision::kFp8Block;
  if (!scaled) job.most_splits = std::clamp(p.k / 256, 1.0, kMostSplits);
  job.matrix = 1 / unit_rate(p, d, accelerator, v);
  job.per_unit = 1 / d.units;
  job.load = 1 / loading_rate(d, 0);
  job.crowd = 1 / (d.multicast * d.cache_rate);
  job.step = v[kStepLatency] * 1e-3;
  job.depth = steps(p.k);
  job.split = v[kSplit];
  job.split_traffic = v[kSplitTraffic] * 2 * p.batch * p.m * p.n * 4 / (0.5 * d.cache_rate);
  return job;
}

double tile_bytes(const MatrixProduct& p, Tile tile) {
  const double rows = std::min(tile.rows, p.m), columns = std::min(tile.columns, p.n);
  return rows * p.bytes.input + columns * p.bytes.weight;
}

GemmChoice choose_tiles(const GemmJob& job, const TileMenu& menu, GemmValues v) {
  Ways ways;
  with_norms(job.device.overlap, [&](auto norms) {
    list_ways<decltype(norms)>(job, menu, v, ways);
    price<decltype(norms)>(job, v, ways);
  });
  std::size_t best = 0;
  for (std::size_t i = 1; i < ways.count; ++i)
    if (ways.time[i] < ways.time[best]) best = i;
  return {ways[best], mean_choice(ways, ways.time[best])};
}

double joined_step(double a, double b, double c, const ProductOverlap& overlap) {
  return with_norms(overlap, [=](auto norms) { return norms.joined(a, b, c); });
}

}  // namespace orrery
