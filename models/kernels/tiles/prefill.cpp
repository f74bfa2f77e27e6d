// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>

#include "models/kernels/device/cache_parts.h"
#include "models/kernels/device/family.h"
#include "models/kernels/device/unit_work.h"
#include "models/kernels/tiles/prompt_tiles.h"
#include "sim/machine/clock.h"
#include "sim/machine/kernel_model.h"

namespace orrery {
namespace {

/// Parameters in the order of PrefillFamily::parameters(). A tile is a block of rows of queries; a
/// step is its products and exponentials with as many keys as the tile has columns.
enum Parameter : std::size_t {
  kLaunch,          ///< us of the launch, with the fast kernel before it that 128 columns have
  kLaunchOther,     ///< us of the launch for other head dimensions and mixed formats
  kRotateQuery,     ///< us for 10^6 elements of queries
  kRotateKey,       ///< us for 10^6 elements of keys and values
  kTileBandwidth,   ///< share of the memory bandwidth that tiles load and store with
  kTile,            ///< us of a tile beside its steps
  kShortTile,       ///< us of a tile of one row group and one step
  kShortTileDim,    ///< us that such a tile takes more for every 128 columns of a head
  kMatrixStep,      ///< factor of the ideal time of the products of a step
  kExpStep,         ///< factor of the ideal time of the exponentials of a step
  kNarrowStep,      ///< us of a step in which 8-bit operands are turned and converted
  kMixedStep,       ///< factor of a step of 16-bit queries over an 8-bit cache
  kMask,            ///< us for 128 columns of a step that the window cuts
  kWindowStep,      ///< us more for a step of 8-bit kernels with a window, up to 128 columns
  kWindowStepWide,  ///< us more for such a step of wider heads
  kLoadLoss,        ///< share of time lost with all multiprocessors busy
  kMatrixLoss,      ///< share of time lost with all tensor cores busy
  kPowerLoss,       ///< share of time lost with all tensor cores busy once the power limit acts
  kPowerFree,       ///< use of the tensor cores, a share, above which time is lost
  kPowerTime,       ///< us over which the power limit averages
  kRamp,            ///< us until all multiprocessors have started
  kExponentials,    ///< exponentials of a unit and clock over those of the device that was fitted
};

/// Tiles of the attention kernels that NVIDIA ships: two warpgroups of 64 rows each on Hopper, two
/// tiles of 128 rows in tensor memory on Blackwell, columns as the shared memory holds them.
PromptTile tile_of(const AcceleratorConfig& accelerator, std::int64_t dim, double bytes) {
  if (multiplies_apart(accelerator)) return {dim <= 128 ? 256.0 : 128.0, dim <= 256 ? 128.0 : 64.0};
  if (matrix_issue(accelerator) != MatrixIssue::kWarpgroup)
    return {dim <= 128 ? 128.0 : 64.0, dim <= 64 ? 128.0 : 64.0};
  double columns = 256;
  while (columns > 64 && columns * static_cast<double>(dim) * bytes > 32768) columns /= 2;
  return {128, columns};
}

/// One kernel on one device, ready to be put together with parameters.
struct Problem {
  double sequences = 0, heads = 0, kv_heads = 0;  ///< query heads and key heads of a sequence
  double query = 0, dim = 0, window = 0;  ///< tokens; columns of a head; tokens, 0: no window
  double prefix = 0;                      ///< earlier tokens
  bool narrow = false;                    ///< an 8-bit kernel
  bool mixed = false;                     ///< 16-bit queries over an 8-bit cache
  double bytes = 2;                       ///< bytes of an element in the kernel
  PromptTile tile;
  PromptSteps steps;                    ///< steps of a head
  double tiles = 0, units = 0;          ///< tiles of all heads; multiprocessors of a rank
  double memory = 0;                    ///< bytes/us of the memory
  double ideal_step = 0, exp_step = 0;  ///< us of the products, of the exponentials of a step
  double exponentials = 1;              ///< value of kExponentials
  double more_work = 1;  ///< FLOPs of the kernel over those of a forward pass: 1 but for backward
};

Problem problem_of(const Kernel& kernel, const AcceleratorConfig& a, double exponentials = 1) {
  Problem p;
  p.exponentials = exponentials;
  p.sequences = static_cast<double>(std::max<std::int64_t>(1, kernel.attention.sequences));
  p.heads = static_cast<double>(kernel.batch) / p.sequences;
  p.kv_heads = static_cast<double>(std::max<std::int64_t>(1, kernel.attention.kv_heads));
  p.query = static_cast<double>(kernel.m);
  p.dim = static_cast<double>(kernel.k);
  p.prefix = static_cast<double>(std::max<std::int64_t>(0, kernel.n - kernel.m));
  const std::int64_t most = std::max(kernel.m, kernel.n);
  p.window = kernel.attention.window < most ? static_cast<double>(kernel.attention.window) : 0;
  p.narrow = element_bytes(kernel.precision) < 2;
  p.mixed = p.narrow && kernel.attention.wide_queries;
  p.bytes = p.narrow ? 1 : 2;
  p.tile = tile_of(a, kernel.k, p.bytes);
  p.steps = prompt_steps({p.query, p.prefix, p.window}, p.tile);
  p.units = static_cast<double>(a.compute.units.value) / a.dies;
  p.tiles = static_cast<double>(kernel.batch) * std::ceil(p.query / p.tile.rows);
  p.memory = memory_rate(a);
  const double rate = matrix_peak(a, kernel.precision).base() / 1e6 / p.units;  // FLOP/us of a unit
  // The 8-bit kernel of Hopper computes 192 columns as 256.
  const bool padded = p.narrow && kernel.k == 192 && p.tile.rows == 128;
  p.ideal_step = 4 * p.tile.rows * p.tile.columns * (padded ? 256 : p.dim) / rate;
  p.exp_step = p.tile.rows * p.tile.columns / fitted_exponentials_us(a);
  const double pairs = kernel.vector_flops.base() > 0 ? 4 * p.dim : 0;
  const double forward = 2.0 * 2 * p.dim * static_cast<double>(kernel.batch) *
                         (p.query * p.prefix + p.query * (p.query + 1) / 2);
  // Without a mask there may be fewer keys than queries, and less work than below a diagonal.
  const double least = kernel.n < kernel.m ? 0.0 : 1.0;
  if (p.window == 0 && pairs > 0 && forward > 0)
    p.more_work = std::max(least, kernel.matrix_flops.base() / forward);
  return p;
}

/// What the tiles of a head take. The last one may have fewer rows than the others.
struct TileTime {
  double full = 0;                        ///< us of a tile but the last, beside its steps
  double step = 0;                        ///< us of a step of a tile but the last
  double mask = 0;                        ///< us more for a step that the window cuts
  double last = 0;                        ///< us of the last tile, beside its steps
  double last_step = 0;                   ///< us of a step of the last tile
  double tile_bytes = 0, last_bytes = 0;  ///< bytes that such tiles move through the memory
};

/// Products and exponentials of a step add up as fitted. Where a device has more exponentials than
/// the one that was fitted, what they save ends at the products.
double arithmetic_us(const Problem& p, const double* v) {
  const double products = v[kMatrixStep] * p.ideal_step;
  const double fitted = products + v[kExpStep] * p.exp_step;
  const double here = products + v[kExpStep] * p.exp_step / p.exponentials;
  return std::max(here, std::min(fitted, kLeastProducts * p.ideal_step));
}

TileTime tile_time(const Problem& p, const double* v) {
  double step = arithmetic_us(p, v);
  if (p.narrow) step += v[kNarrowStep];
  if (p.mixed && (p.dim == 128 || p.tile.rows > 128)) step *= v[kMixedStep];
  const double rows_last = p.query - (std::ceil(p.query / p.tile.rows) - 1) * p.tile.rows;
  const double per_byte = std::min(p.tiles, p.units) / (v[kTileBandwidth] * p.memory);
  const double earlier = p.window > 0 ? std::min(p.prefix, p.window) : p.prefix;
  const double kv_bytes = p.sequences * (p.query + earlier) * p.kv_heads * 2 * p.dim * p.bytes /
                          p.tiles;                 // read once, per tile
  const double row_bytes = p.dim * (p.bytes + 2);  // a query in, a bf16 result out
  const bool slow =
      p.narrow && p.tile.rows == 128 && p.steps.masked_most > 0 && !(p.dim == 128 && !p.mixed);
  const double window = slow ? (p.dim <= 128 ? v[kWindowStep] : v[kWindowStepWide]) : 0;
  const bool single = rows_last <= p.tile.rows / 2;
  TileTime t;
  t.tile_bytes = p.tile.rows * row_bytes + kv_bytes;
  t.last_bytes = rows_last * row_bytes + kv_bytes;
  t.full = v[kTile] + t.tile_bytes * per_byte;
  t.step = step + window;
  t.mask = v[kMask] * p.tile.columns / 128;
  // A last tile of one row group: its first step is part of a time of its own.
  t.last = (single ? v[kShortTile] + v[kShortTileDim] * p.dim / 128 : v[kTile]) +
           t.last_bytes * per_byte;
  t.last_step = (single ? 0.6 * step : step) + window;
  return t;
}

/// Tiles of all heads together.
struct TileWork {
  double longest = 0;  ///< us of the longest tile
  double all = 0;      ///< us of all tiles one after the other
};

TileWork tile_work(const Problem& p, const TileTime& t) {
  const double last = t.last + t.last_step * p.steps.last + t.mask * p.steps.masked_last;
  const double before = std::ceil(p.query / p.tile.rows) - 1;
  TileWork work;
  work.longest = last;
  if (before > 0)
    work.longest = std::max(last, t.full + t.step * p.steps.most + t.mask * p.steps.masked_most);
  work.all = p.sequences * p.heads *
             (before * t.full + t.step * p.steps.before + t.mask * p.steps.masked_before + last);
  return work;
}

/// Share of time lost to the power cap by a kernel of `core` us whose use of the tensor cores is
/// `excess` above what costs nothing.
double power_loss(const Kernel& kernel, const AcceleratorConfig& a, double core, double excess,
                  const double* v) {
  const double reached = core / (core + v[kPowerTime]);
  if (!a.sold) return v[kPowerLoss] * reached * excess;
  const double free = v[kPowerFree];
  const double busy = excess / (1 - free);
  return throttle_here(a, kernel.precision, v[kPowerLoss] * (1 - free)) * busy * reached;
}

/// How much longer the tiles of a kernel take together.
struct Losses {
  double all = 1;    ///< factor by multiprocessors in each other's way and by a lower clock
  double clock = 1;  ///< factor by the power limit's lower clock alone
};

/// us of the same tiles with the exponentials of the device that was fitted.
double fitted_core(Problem p, const double* v) {
  p.exponentials = 1;
  const TileWork work = tile_work(p, tile_time(p, v));
  return makespan(p.tiles, p.units, work.longest, work.all);
}

/// What fits say of multiprocessors in each other's way has exponentials and products of their
/// device in it, and stays; power is what the tensor cores take here.
Losses losses_of(const Kernel& kernel, const AcceleratorConfig& accelerator, const Problem& p,
                 const TileWork& work, double core, const double* v) {
  const double busy = work.all / p.units / core;
  const double products =
      p.ideal_step * (p.steps.before + p.steps.last) * p.sequences * p.heads / p.units;
  const auto excess = [&](double us) { return std::max(0.0, products / us - v[kPowerFree]); };
  const double fitted = p.exponentials == 1 ? core : fitted_core(p, v);
  const double matrix_loss = 1 + v[kMatrixLoss] * excess(fitted);
  const double limited = matrix_loss + power_loss(kernel, accelerator, core, excess(core), v);
  return {(1 + v[kLoadLoss] * busy) * limited, limited / matrix_loss};
}

/// us beside the tiles: the kernel before, and until all multiprocessors have started.
double beside_tiles(const Problem& p, const double* v) {
  const double elements = p.sequences * p.query * p.dim / 1e6;
  return elements * (p.heads * v[kRotateQuery] + p.kv_heads * v[kRotateKey]) +
         v[kRamp] * std::min(1.0, p.tiles / p.units);
}

/// Elements of scores that the tiles of the mask compute over those that are seen. Rows that a last
/// tile lacks are zeros, which draw nothing.
double computed_over_seen(const Kernel& kernel, const Problem& p) {
  const double seen = kernel.matrix_flops.base() / (4 * p.dim * p.more_work);
  const bool masked = p.more_work < 1.5 || kernel.attention.backward;
  if (!masked || !(seen > 0)) return 1;
  const double rows_last = p.query - (std::ceil(p.query / p.tile.rows) - 1) * p.tile.rows;
  const double computed = p.sequences * p.heads * p.tile.columns *
                          (p.steps.before * p.tile.rows + p.steps.last * rows_last);
  return std::max(1.0, computed / seen);
}

/// us of the launch.
double launch_of(const Problem& p, const double* v) {
  const bool fast = p.dim == 128 && !p.mixed;
  return v[fast ? kLaunch : kLaunchOther];
}

/// Attention over a prompt, tile by tile: a block of query rows of one head meets the keys that it
/// sees step by step. Tiles are handed out head after head, rows ascending, each multiprocessor
/// taking the next when it is free; causal tiles get longer towards the end of a head, so the tail
/// is that of prompt_tiles.h. Before the core runs a kernel that rotates queries and keys and
/// writes the cache, as serving engines time it.
///
/// Time of a tile: a fixed part, its bytes over a share of the memory, and steps of
/// `matrix_step` x (ideal time of the two products) + `exp_step` x (ideal time of the
/// exponentials). Long kernels lose clock to the power limit once they keep the tensor cores busy.
class PrefillFamily final : public KernelFamily {
 public:
  const std::vector<ParameterInfo>& parameters() const override {
    static const std::vector<ParameterInfo> table = {
        {"launch", "us", 0.1, 1000},
        {"launch_other", "us", 0.1, 1000},
        {"rotate_query", "us", 1e-3, 100},
        {"rotate_key", "us", 1e-3, 100},
        {"tile_bandwidth", "1", 0.05, 8},
        {"tile", "us", 1e-3, 100},
        {"short_tile", "us", 1e-3, 100},
        {"short_tile_dim", "us", 1e-3, 100},
        {"matrix_step", "1", 0.3, 10},
        {"exp_step", "1", 1e-2, 10},
        {"narrow_step", "us", 1e-3, 10},
        {"mixed_step", "1", 0.7, 1.3},
        {"mask", "us", 1e-3, 10},
        {"window_step", "us", 1e-3, 20},
        {"window_step_wide", "us", 1e-3, 20},
        {"load_loss", "1", 1e-4, 0.4},
        {"matrix_loss", "1", 1e-3, 1},
        {"power_loss", "1", 1e-2, 2},
        {"power_free", "1", 0.1, 0.5},
        {"power_time", "us", 100, 30000},
        {"ramp", "us", 1e-3, 20},
        {"exponentials", "1", 1e-3, 1e3, false},
    };
    return table;
  }

  std::vector<double> priors(const AcceleratorConfig& accelerator, Precision) const override {
    // Starting values near those that H200 and H100 share; a device of its own has its datasheet's
    // rates in the ideal steps.
    const double launch = accelerator.kernel.launch.value.base() * 1e6;
    return {3 * launch, 4 * launch, 1.5, 0.3, 0.75, 2.8,  2.0, 0.2, 1.13, 0.75, 0.4,
            0.96,       0.8,        3.0, 2.5, 0.02, 0.02, 0.6, 0.3, 2500, 0.6,  1};
  }

  KernelTime time(const Kernel& kernel, const AcceleratorConfig& accelerator,
                  const double* v) const override {
    const Problem p = problem_of(kernel, accelerator, v[kExponentials]);
    const TileTime t = tile_time(p, v);
    const TileWork work = tile_work(p, t);
    const double core = makespan(p.tiles, p.units, work.longest, work.all);
    const Losses losses = losses_of(kernel, accelerator, p, work, core, v);
    KernelTime time;
    time.launch_us = launch_of(p, v);
    time.total_us = time.launch_us + (beside_tiles(p, v) + core * losses.all * p.more_work);
    time.clock = 1 / losses.clock;
    // Each tile of queries reads the keys and values of its steps.
    time.cache_bytes = (p.steps.before + p.steps.last) * p.sequences * p.heads * p.tile.columns *
                       p.dim * 2 * p.bytes * p.more_work;
    time.loaded_bytes = time.cache_bytes;
    time.computed = computed_over_seen(kernel, p);
    return time;
  }

  std::optional<ResidualPoint> residual_point(const Kernel& kernel, const AcceleratorConfig& on,
                                              const double* /*values*/) const override {
    const Problem p = problem_of(kernel, on);
    if (kernel.attention.backward) return std::nullopt;  // tables have forward passes only
    // Scales by which errors stay alike on H200, where half and twice of them do as well within
    // 0.05 %. A cached prefix, which no table has, takes a kernel away from the measured ones.
    const double prefix =
        static_cast<double>(std::max(kernel.n, kernel.m)) / std::max(1.0, p.query);
    return ResidualPoint{
        static_cast<int>(kernel.k) * 4 + (p.mixed ? 2 : 0) + (p.window > 0 ? 1 : 0),
        {0.5 * std::log2(std::max(1.0, p.sequences * p.heads)),
         0.5 * std::log2(std::max(1.0, p.query)),
         0.1 * std::log2(std::max(1.0, p.heads / p.kv_heads)), 0.1 * std::log2(p.sequences),
         2 * std::log2(prefix)}};
  }

  /// Tiles get more of a memory by the root of its bandwidth a unit; exponentials follow
  /// compute.special.
  std::vector<double> transferred(const std::vector<double>& values, const AcceleratorConfig& from,
                                  const AcceleratorConfig& to, Precision) const override {
    const auto of_unit = [](const AcceleratorConfig& a) {
      return a.memory.bandwidth.value.base() / static_cast<double>(a.compute.units.value);
    };
    std::vector<double> moved = values;
    moved[kTileBandwidth] *= std::sqrt(of_unit(from) / of_unit(to));
    moved[kExponentials] *= exponentials_over(to, from);
    return moved;
  }

  /// A kind of block for each row of tiles, in the order of a head; heads repeat it.
  std::optional<BlockPlan> blocks(const Kernel& kernel, const AcceleratorConfig& accelerator,
                                  const double* v) const override {
    const Problem p = problem_of(kernel, accelerator, v[kExponentials]);
    const TileTime t = tile_time(p, v);
    const double flops = 4 * p.tile.rows * p.tile.columns * p.dim * p.more_work;  // of a step
    const auto tiles = static_cast<std::size_t>(std::ceil(p.query / p.tile.rows));
    BlockPlan plan;
    plan.kinds.reserve(tiles);
    plan.launch.reserve(tiles);
    for (std::size_t i = 0; i < tiles; ++i) {
      const bool last = i + 1 == tiles;
      const auto [count, cut] =
          tile_steps(static_cast<double>(i), {p.query, p.prefix, p.window}, p.tile);
      BlockKind kind;
      kind.fixed_us = (last ? t.last : t.full) + t.mask * cut;
      kind.pipe_us = (last ? t.last_step : t.step) * count;
      kind.memory_bytes = last ? t.last_bytes : t.tile_bytes;
      kind.flops = flops * count;
      plan.kinds.push_back(kind);
      plan.launch.push_back({i, 1});
    }
    plan.repeats = kernel.batch;
    plan.machine.units = std::llround(p.units);
    plan.machine.memory_bytes_per_us = p.memory;
    // Losses are those of the closed form's time: they change by less than the tenth part of what
    // the times differ by.
    const TileWork work = tile_work(p, t);
    const double core = makespan(p.tiles, p.units, work.longest, work.all);
    plan.scale = losses_of(kernel, accelerator, p, work, core, v).all * p.more_work;
    plan.launch_us = launch_of(p, v);
    plan.extra_us = beside_tiles(p, v);
    return plan;
  }
};

const RegisterTileFamily<PrefillFamily> registered_prefill_tiles(
    KernelClass::kAttentionPrefill, "attention over prompts by tiles, steps and waves");

}  // namespace
}  // namespace orrery
