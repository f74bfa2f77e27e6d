// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>

#include "models/kernels/device/cache_parts.h"
#include "models/kernels/device/family.h"
#include "models/kernels/device/unit_work.h"
#include "models/kernels/tiles/prompt_tiles.h"
#include "sim/machine/kernel_model.h"

namespace orrery {
namespace {

enum Parameter : std::size_t {
  kLaunch,           ///< us, with the kernels before it that assemble queries and keys
  kNarrowLaunch,     ///< us more where the cache has 8 bits
  kQueryBytes,       ///< memory traffic before the core for each element of queries
  kLatentBytes,      ///< memory traffic before the core for each element of the latents
  kTile,             ///< kclk of a tile beside its steps
  kShortTile,        ///< kclk of a tile of one row group beside its steps
  kStep,             ///< factor of the ideal time of the products of a step
  kNarrowStep,       ///< factor of it in 8 bits, which are not twice as fast
  kTileBandwidth,    ///< share of the memory bandwidth that tiles load and store with
  kNarrowBandwidth,  ///< share of it, in 8 bits
  kPowerLoss,        ///< share of time lost with all tensor cores busy, once the power limit acts
  kPowerTime,        ///< us over which the power limit averages
  kRamp,             ///< us until all multiprocessors have started
  kExponentials,     ///< exponentials a unit and clock over the fitted device's
};

/// A prompt on one device. 128 of 192 columns of a query are those of a value.
struct Problem {
  double sequences = 0, heads = 0, query = 0, context = 0;
  double key_dim = 0, value_dim = 0;
  bool narrow = false;
  double rows = 128, columns = 64;
  double units = 0, memory = 0, kclk = 0;
  double ideal_step = 0;  ///< us, in 16 bits
  double exp_step = 0;    ///< us of the exponentials
  double matrix_us = 0, more_work = 1;

  double tiles() const { return sequences * heads * std::ceil(query / rows); }
};

Problem problem_of(const Kernel& kernel, const AcceleratorConfig& a) {
  Problem p;
  p.sequences = static_cast<double>(std::max<std::int64_t>(1, kernel.attention.sequences));
  p.heads = static_cast<double>(kernel.batch) / p.sequences;
  p.query = static_cast<double>(std::max<std::int64_t>(1, kernel.m));
  p.context = std::max(p.query, static_cast<double>(kernel.n));
  p.key_dim = static_cast<double>(kernel.k);
  p.value_dim = p.key_dim * 2 / 3;
  p.narrow = kernel.attention.wide_queries || element_bytes(kernel.precision) < 2;
  // Two groups of 64 rows on Hopper and of 128 on Blackwell; wide heads leave room for 64 keys.
  if (multiplies_apart(a)) p.rows = 256;
  p.units = static_cast<double>(a.compute.units.value) / a.dies;
  p.memory = memory_rate(a);
  p.kclk = unit_kclk_us(a);
  const double rate = matrix_peak(a, kernel.precision).base() / 1e6 / p.units;
  p.ideal_step = 2 * p.rows * p.columns * (p.key_dim + p.value_dim) / rate;
  p.exp_step = p.rows * p.columns / fitted_exponentials_us(a);
  const double pairs = p.query * p.context - p.query * (p.query - 1) / 2;
  const double forward = 2 * p.sequences * p.heads * pairs * (p.key_dim + p.value_dim);
  p.matrix_us = kernel.matrix_flops.base() / 1e6 / (rate * p.units);
  p.more_work = std::max(1.0, kernel.matrix_flops.base() / forward);
  return p;
}

/// What tiles take, in us.
struct TileTime {
  double step = 0;
  double full = 0;                        ///< a tile beside its steps, all but the last of a head
  double last = 0, last_step = 0;         ///< the last tile
  double last_us = 0;                     ///< us of the last tile's bytes
  double tile_bytes = 0, last_bytes = 0;  ///< bytes through the memory
};

/// What a step takes beyond its products is time of the exponentials that these do not hide: with
/// more of them than on the device that was fitted it gets shorter, with fewer longer.
double step_us(const Problem& p, const double* v) {
  const double fitted = v[kStep] * p.ideal_step * (p.narrow ? v[kNarrowStep] : 1);
  const double share = 1 / v[kExponentials];
  const double shown =
      std::clamp(fitted - kLeastProducts * p.ideal_step, 0.0, p.exp_step) * (share - 1);
  return std::max(fitted + shown, share > 1 ? p.exp_step * share : 0);
}

TileTime tile_time(const Problem& p, const double* v) {
  const double tiles = std::ceil(p.query / p.rows);
  const double rows_last = p.query - (tiles - 1) * p.rows;
  const double share = v[kTileBandwidth] * (p.narrow ? v[kNarrowBandwidth] : 1);
  const double per_byte = std::min(p.tiles(), p.units) / (share * p.memory);
  const double element = p.narrow ? 1 : 2;
  const double key_bytes = p.context * (p.key_dim + p.value_dim) * element / tiles;
  const double row_bytes = p.key_dim * element + 2 * p.value_dim;
  const bool single = rows_last <= p.rows / 2;
  TileTime t;
  t.tile_bytes = p.rows * row_bytes + key_bytes;
  t.last_bytes = rows_last * row_bytes + key_bytes;
  t.step = step_us(p, v);
  t.full = v[kTile] * p.kclk + t.tile_bytes * per_byte;
  // A tile of a single row group has the unit's tensor cores for itself.
  t.last_step = single ? 0.6 * t.step : t.step;
  t.last = (single ? v[kShortTile] : v[kTile]) * p.kclk;
  t.last_us = t.last_bytes * per_byte;
  return t;
}

/// Tiles of all heads together; us, `all` of one multiprocessor.
struct Work {
  double longest = 0, all = 0, steps = 0;
};

Work work_of(const Problem& p, const TileTime& t) {
  const double before = std::ceil(p.query / p.rows) - 1;
  const double prefix = p.context - p.query;
  const double steps_last = std::ceil(p.context / p.columns);
  const double steps_most = std::ceil((prefix + before * p.rows) / p.columns);
  const double steps_before =
      before * prefix / p.columns + p.rows / p.columns * before * (before + 1) / 2;
  Work work;
  work.longest = t.last + t.last_step * steps_last + t.last_us;
  work.all = p.sequences * p.heads * (before * t.full + t.step * steps_before + work.longest);
  if (before > 0) work.longest = std::max(work.longest, t.full + t.step * steps_most);
  work.steps = p.sequences * p.heads * (steps_before + steps_last);
  return work;
}

/// The core of a kernel, us.
struct Core {
  double tiles = 0;  ///< tiles at the boost clock
  double all = 0;    ///< core at the clock it has
};

Core core_of(const Problem& p, const Work& work, const double* v) {
  // Above this use of the tensor cores clocks fall; as fitted for prefill on H200 and H100.
  constexpr double kPowerFree = 0.32;
  Core core;
  core.tiles = makespan(p.tiles(), p.units, work.longest, work.all);
  const double matrix = p.ideal_step * work.steps / (p.units * core.tiles);
  core.all = core.tiles;
  core.all *= 1 + v[kPowerLoss] * core.tiles / (core.tiles + v[kPowerTime]) *
                      std::max(0.0, matrix - kPowerFree);
  return core;
}

double launch_of(const Problem& p, const double* v) {
  return v[kLaunch] + (p.narrow ? v[kNarrowLaunch] : 0);
}

/// Time of the kernels that assemble queries and keys.
double assemble_us(const Problem& p, const double* v) {
  const double tokens = p.sequences * p.query;
  const double latent = 3 * p.key_dim;  // 512 + 64 columns of keys of 128 + 64
  return tokens *
         (p.heads * (p.key_dim + p.value_dim) * v[kQueryBytes] + latent * v[kLatentBytes]) /
         p.memory;
}

/// Until all multiprocessors have started.
double ramp_us(const Problem& p, const double* v) {
  return v[kRamp] * std::min(1.0, p.tiles() / p.units);
}

/// Latent attention over a prompt, keys and values expanded (DeepSeek-V2, arXiv 2405.04434): the
/// tiles of prefill.cpp with wider keys than values, and before them kernels that assemble queries
/// and keys and write the latents to the cache.
class MlaPrefillFamily final : public KernelFamily {
 public:
  const std::vector<ParameterInfo>& parameters() const override {
    static const std::vector<ParameterInfo> table = {
        {"launch", "us", 0.1, 1000},
        {"narrow_launch", "us", 0.01, 1000},
        {"query_bytes", "B", 0.01, 100},
        {"latent_bytes", "B", 0.01, 100},
        {"tile", "kclk", 0.01, 100},
        {"short_tile", "kclk", 0.01, 100},
        {"step", "1", 0.3, 10},
        {"narrow_step", "1", 0.3, 3},
        {"tile_bandwidth", "1", 0.05, 20},
        {"narrow_bandwidth", "1", 0.05, 20},
        {"power_loss", "1", 1e-2, 5},
        {"power_time", "us", 100, 30000},
        {"ramp", "us", 1e-2, 20},
        {"exponentials", "1", 1e-3, 1e3, false},
    };
    return table;
  }

  std::vector<double> priors(const AcceleratorConfig& accelerator, Precision) const override {
    // Of an H200. The traffic before the core is the same number of bytes on every device that was
    // fitted; the launch is that of five empty GEMMs.
    const double launch = accelerator.kernel.launch.value.base() * 1e6;
    return {5 * launch, 1.7 * launch, 0.3, 5.8, 4.8, 4.9, 1.4, 0.95, 1.6, 0.4, 0.6, 4300, 1.0, 1};
  }

  KernelTime time(const Kernel& kernel, const AcceleratorConfig& accelerator,
                  const double* v) const override {
    const Problem p = problem_of(kernel, accelerator);
    const Work work = work_of(p, tile_time(p, v));
    const Core core = core_of(p, work, v);
    const double assemble = assemble_us(p, v);
    KernelTime time;
    time.launch_us = launch_of(p, v);
    const double body = assemble + std::max(core.all * p.more_work, p.matrix_us) + ramp_us(p, v);
    time.total_us = time.launch_us + body;
    time.cache_bytes =
        work.steps * p.columns * (p.key_dim + p.value_dim) * (p.narrow ? 1 : 2) * p.more_work;
    time.loaded_bytes = time.cache_bytes;
    return time;
  }

  std::optional<ResidualPoint> residual_point(const Kernel& kernel, const AcceleratorConfig& on,
                                              const double* /*values*/) const override {
    if (kernel.attention.backward) return std::nullopt;  // tables have forward passes only
    const Problem p = problem_of(kernel, on);
    ResidualPoint point;
    point.part = p.narrow ? 1 : 0;
    point.at = {0.6 * std::log2(p.query), 0.36 * std::log2(p.sequences), 0.36 * std::log2(p.heads),
                0.6 * std::log2(p.context / p.query)};
    return point;
  }

  /// Exponentials follow compute.special.
  std::vector<double> transferred(const std::vector<double>& values, const AcceleratorConfig& from,
                                  const AcceleratorConfig& to, Precision) const override {
    std::vector<double> moved = values;
    moved[kExponentials] *= exponentials_over(to, from);
    return moved;
  }

  /// A kind of block for each row of tiles, in the order of a head; heads repeat it.
  std::optional<BlockPlan> blocks(const Kernel& kernel, const AcceleratorConfig& accelerator,
                                  const double* v) const override {
    const Problem p = problem_of(kernel, accelerator);
    const TileTime t = tile_time(p, v);
    const auto tiles = static_cast<std::size_t>(std::ceil(p.query / p.rows));
    const double flops = 2 * p.rows * p.columns * (p.key_dim + p.value_dim) * p.more_work;
    BlockPlan plan;
    for (std::size_t i = 0; i < tiles; ++i) {
      const bool last = i + 1 == tiles;
      // Its last row sees all keys up to its own.
      const double keys = p.context - p.query + static_cast<double>(i + 1) * p.rows;
      const double steps = std::ceil(std::min(keys, p.context) / p.columns);
      BlockKind kind;
      kind.fixed_us = last ? t.last + t.last_us : t.full;
      kind.pipe_us = (last ? t.last_step : t.step) * steps;
      kind.memory_bytes = last ? t.last_bytes : t.tile_bytes;
      kind.flops = flops * steps;
      plan.kinds.push_back(kind);
      plan.launch.push_back({i, 1});
    }
    plan.repeats = kernel.batch;
    plan.machine.units = std::llround(p.units);
    plan.machine.memory_bytes_per_us = p.memory;
    // Losses are those of the closed form's time, as for prefill.cpp.
    const Core core = core_of(p, work_of(p, t), v);
    plan.scale = std::max(core.all * p.more_work, p.matrix_us) / core.tiles;
    plan.launch_us = launch_of(p, v);
    plan.extra_us = assemble_us(p, v) + ramp_us(p, v);
    return plan;
  }
};

const RegisterTileFamily<MlaPrefillFamily> registered_mla_prefill_tiles(
    KernelClass::kMlaPrefill, "latent attention over prompts by tiles, steps and waves");

}  // namespace
}  // namespace orrery
