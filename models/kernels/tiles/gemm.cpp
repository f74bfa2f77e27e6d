// SPDX-License-Identifier: Apache-2.0
#include "models/kernels/tiles/gemm.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

#include "models/kernels/tiles/block_scaled_gemm.h"
#include "models/kernels/tiles/matrix_product.h"
#include "models/kernels/tiles/tile_menu.h"
#include "sim/machine/clock.h"
#include "sim/machine/kernel_model.h"

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
double cube_root(double x) {
  constexpr std::uint64_t kThirdOfBias = 0x2a9f7893782da1ce;
  auto y = std::bit_cast<double>(std::bit_cast<std::uint64_t>(x) / 3 + kThirdOfBias);
  for (int step = 0; step < 2; ++step) {
    const double cube = y * y * y;
    y *= (cube + 2 * x) / (2 * cube + x);
  }
  return y;
}

/// A step of the main loop: a p-norm, p = 4, 3, 2 from Ampere to Blackwell, as instructions, loads
/// and latencies overlap less and less in time that gets shorter. Roots instead of pow(): this is
/// the innermost loop.
double joined(double a, double b, double c, int rows) {
  if (rows >= 128) return std::sqrt(a * a + b * b + c * c);
  if (rows >= 64) return cube_root(a * a * a + b * b * b + c * c * c);
  return std::sqrt(std::sqrt(fourth(a) + fourth(b) + fourth(c)));
}

/// Computing beside streaming from memory: p = 4 on Hopper, 3 before and after.
double beside(double a, double b, int rows) {
  if (rows == 64) return std::sqrt(std::sqrt(fourth(a) + fourth(b)));
  return cube_root(a * a * a + b * b * b);
}

/// What all candidates share; reciprocals, because candidates are where the time goes.
struct Job {
  MatrixProduct product;
  TileDevice device;
  Streaming streaming;
  double most_splits = 1;
  double matrix = 0;           ///< us of a FLOP on one unit
  double per_unit = 0;         ///< 1 / units
  double load = 0, crowd = 0;  ///< us of a byte into one unit alone, and for each active unit
  double step = 0;             ///< us of an element of the summed dimension, at least
  double depth = 0;            ///< elements that steps take without splitting
  double split_traffic = 0;    ///< us of a split
};

double steps(double depth) { return kStepDepth * std::ceil(depth / kStepDepth); }

Job job_of(const Kernel& kernel, const AcceleratorConfig& accelerator, GemmValues v) {
  Job job;
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
  job.split_traffic = v[kSplitTraffic] * 2 * p.batch * p.m * p.n * 4 / (0.5 * d.cache_rate);
  return job;
}

/// A way to run a product.
struct Trial {
  Tile tile;
  double tiles = 1;  ///< of all splits together
  double splits = 1;
};

/// A product run in one way, in us.
struct Candidate {
  Trial trial;
  double depth = 0;                       ///< of the summed dimension that a tile takes
  double matrix = 0, load = 0, loop = 0;  ///< of an element of depth, twice; of a main loop
  double exposed = 0;                     ///< of the main loop: loads that nothing hides
  double epilogue = 0, steady = 0;        ///< steady: of a tile between others
  double split = 0;                       ///< adding up
  double time = std::numeric_limits<double>::infinity();  ///< without launch
};

/// Loads of one tile and element of depth.
double tile_bytes(const MatrixProduct& p, Tile tile) {
  const double rows = std::min(tile.rows, p.m), columns = std::min(tile.columns, p.n);
  return rows * p.bytes.input + columns * p.bytes.weight;
}

/// Makes the main loop wait for its loads where the other blocks of the unit do not hide them.
void expose_loads(const Job& job, Candidate& c) {
  const Tile tile = c.trial.tile;
  const LoadHiding& hiding = job.device.hiding;
  const double blocks = hiding.resident(tile_bytes(job.product, tile) * kStepDepth,
                                        tile.rows * tile.columns, c.trial.tiles * job.per_unit);
  const double serial = c.depth * (c.matrix + c.load + job.step);
  c.exposed = hiding.step_us(c.loop, serial, blocks) - c.loop;
  c.loop += c.exposed;
}

/// Its time is infinite where it is certain to be above `limit`.
Candidate candidate(const Job& job, const Trial& trial, double limit, GemmValues v) {
  const MatrixProduct& p = job.product;
  const TileDevice& d = job.device;
  const Tile tile = trial.tile;
  Candidate c;
  c.trial = trial;
  c.depth = trial.splits > 1 ? steps(std::ceil(p.k / trial.splits)) : job.depth;
  const double rows = std::min(tile.rows, p.m), columns = std::min(tile.columns, p.n);
  c.matrix = 2 * tile.rows * tile.columns * job.matrix;
  if (p.widening_us > 0)
    c.matrix = joined(c.matrix, columns * p.widening_us, 0, d.instruction_rows);
  const double waves = trial.tiles * job.per_unit > 1 ? counted_waves(trial.tiles, d.units, v) : 1;
  c.load = tile_bytes(p, tile) * std::max(job.load, job.crowd * (trial.tiles / waves));
  if (c.depth * std::max({c.matrix, c.load, job.step}) * waves > limit) return c;
  c.loop = c.depth * joined(c.matrix, c.load, job.step, d.instruction_rows);
  if (!d.hiding.async_copy) expose_loads(job, c);
  c.epilogue = v[kEpilogue] * rows * columns * (1.0 / 16384);
  c.steady = steady_us(c.loop, c.epilogue, v);
  const double compute = v[kFill] + c.loop + c.epilogue + (waves - 1) * c.steady;
  if (trial.splits > 1) c.split = v[kSplit] + job.split_traffic * trial.splits;
  c.time = beside(compute, job.streaming.time_us, d.instruction_rows) + c.split;
  return c;
}

/// The mean of the candidates' times, the faster the heavier.
double mean_choice(const double* times, std::size_t count, double best) {
  double weights = 0, sum = 0;
  for (std::size_t i = 0; i < count; ++i) {
    if (times[i] > kHopeless * best) continue;
    const double weight = std::exp((1 - times[i] / best) / kChoice);
    weights += weight;
    sum += weight * times[i];
  }
  return sum / weights;
}

/// What the library may choose from, and what it is taken to choose: the fastest, or now and then
/// one that is not much slower.
struct Choice {
  Candidate best;
  double expected = 0;  ///< us
};

Choice choose(const Job& job, const TileMenu& menu, GemmValues v) {
  std::array<double, 2 * TileMenu::kMost> times{};
  std::size_t count = 0;
  Choice choice;
  const auto consider = [&](const Trial& trial) {
    const Candidate next = candidate(job, trial, kHopeless * choice.best.time, v);
    times[count++] = next.time;
    if (next.time < choice.best.time) choice.best = next;
  };
  const MatrixProduct& p = job.product;
  Tile before{};
  double down = 0, across = 0;  // tiles along either dimension
  for (const Tile tile : menu) {
    if (tile.rows != before.rows) down = std::ceil(p.m / tile.rows);
    if (tile.columns != before.columns) across = std::ceil(p.n / tile.columns);
    before = tile;
    const double tiles = p.batch * down * across;
    consider({tile, tiles, 1});
    if (2 * tiles > job.device.units || job.most_splits <= 1) continue;
    const double splits = std::min(std::floor(job.device.units / tiles), job.most_splits);
    consider({tile, tiles * splits, splits});
  }
  choice.expected = mean_choice(times.data(), count, choice.best.time);
  return choice;
}

/// A library's tiles for a device without asynchronous copies suit it, but are not better chosen
/// than those for others.
Choice choose(const Job& job, const Kernel& kernel, const AcceleratorConfig& accelerator,
              GemmValues v) {
  const TileMenu menu = tile_menu(kernel, accelerator, job.product.bytes);
  Choice choice = choose(job, menu, v);
  if (job.device.hiding.async_copy) return choice;
  Job overlapped = job;
  overlapped.device.hiding.async_copy = true;
  choice.expected = std::max(choice.expected, choose(overlapped, menu, v).expected);
  return choice;
}

/// Bytes that the L2 gives all tiles together.
double cache_bytes(const Job& job, const Candidate& c) {
  return c.trial.tiles * c.depth * tile_bytes(job.product, c.trial.tile) / job.device.multicast;
}

/// What limits a product that takes `body` us with a candidate.
Bound bound_of(const Job& job, const Candidate& c, double launch, double body) {
  if (launch > body) return Bound::kLatency;
  if (job.streaming.time_us > 0.7 * body) return Bound::kMemory;
  const double waves = std::max(1.0, c.trial.tiles * job.per_unit);
  if (waves * c.loop < 0.5 * body) return Bound::kLatency;  // fill, epilogue and adding up
  if (job.step > std::max(c.matrix, c.load)) return Bound::kLatency;
  return c.load > c.matrix ? Bound::kCache : Bound::kTensor;
}

/// The kinds of blocks of a candidate, as the closed form has them: all waves but the last in one
/// steady pace, the first after a fill.
void add_blocks(const Job& job, const Candidate& c, GemmValues v, BlockPlan& plan) {
  const auto whole = [](double x) { return static_cast<std::int64_t>(std::llround(x)); };
  const double units = job.device.units, tiles = c.trial.tiles;
  BlockKind kind;
  kind.pipe_us = c.depth * joined(c.matrix, 0, job.step, job.device.instruction_rows);
  const MatrixProduct& p = job.product;
  const Tile tile = c.trial.tile;
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
  const Job job = job_of(kernel, accelerator, v);
  const Choice choice = choose(job, kernel, accelerator, v);
  KernelTime time;
  time.launch_us = v[kLaunch];
  time.total_us = time.launch_us + choice.expected;
  time.bound = bound_of(job, choice.best, time.launch_us, choice.expected);
  time.clock = 1 / clock_loss(job.product, job.device, accelerator, v);
  time.cache_bytes = cache_bytes(job, choice.best);
  return time;
}

std::optional<BlockPlan> GemmFamily::blocks(const Kernel& kernel,
                                            const AcceleratorConfig& accelerator,
                                            const double* values) const {
  const GemmValues v{values};
  if (runs_block_scaled(kernel, accelerator)) return std::nullopt;
  const Job job = job_of(kernel, accelerator, v);
  const Choice choice = choose(job, kernel, accelerator, v);
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
  machine.memory_exponent = d.instruction_rows == 64 ? 4 : 3;
  machine.cache_exponent = d.instruction_rows >= 128 ? 2 : d.instruction_rows >= 64 ? 3 : 4;
  return plan;
}

}  // namespace orrery
