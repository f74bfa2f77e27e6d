// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>

#include "models/kernels/cache_parts.h"
#include "models/kernels/tiles/dispatch_tail.h"
#include "models/kernels/tiles/mla.h"
#include "models/kernels/tiles/unit_clock.h"
#include "sim/machine/kernel_model.h"

namespace orrery {
namespace {

enum Parameter : std::size_t {
  kLaunch,           ///< us, with the kernels before it that assemble queries and keys
  kNarrowLaunch,     ///< us more where the cache has 8 bits
  kQueryBytes,       ///< memory traffic before the core for each element of queries
  kLatentBytes,      ///< the same for each element of the latents
  kTile,             ///< kclk of a tile beside its steps
  kShortTile,        ///< kclk of a tile of one row group beside its steps
  kStep,             ///< of the ideal time of the products of a step
  kNarrowStep,       ///< of it, in 8 bits, which are not twice as fast
  kTileBandwidth,    ///< share of the memory bandwidth that tiles load and store with
  kNarrowBandwidth,  ///< of it, in 8 bits
  kPowerLoss,        ///< share of time lost with all tensor cores busy, once the power limit acts
  kPowerTime,        ///< us over which the power limit averages
  kRamp,             ///< us until all multiprocessors have started
};

/// A prompt on one device. 128 of 192 columns of a query are those of a value.
struct Problem {
  double sequences = 0, heads = 0, query = 0, context = 0;
  double key_dim = 0, value_dim = 0;
  bool narrow = false;
  double rows = 128, columns = 64;
  double units = 0, memory = 0, kclk = 0;
  double ideal_step = 0;  ///< us, in 16 bits
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
  if (a.core && a.core->matrix_tile && a.core->matrix_tile->rows >= 128) p.rows = 256;
  p.units = static_cast<double>(a.compute.units.value) / a.dies;
  p.memory = memory_rate(a);
  p.kclk = unit_kclk_us(a);
  const double rate = matrix_peak(a, kernel.precision).base() / 1e6 / p.units;
  p.ideal_step = 2 * p.rows * p.columns * (p.key_dim + p.value_dim) / rate;
  const double pairs = p.query * p.context - p.query * (p.query - 1) / 2;
  const double forward = 2 * p.sequences * p.heads * pairs * (p.key_dim + p.value_dim);
  p.matrix_us = kernel.matrix_flops.base() / 1e6 / (rate * p.units);
  p.more_work = std::max(1.0, kernel.matrix_flops.base() / forward);
  return p;
}

/// Tiles of all heads together; us, `all` of one multiprocessor.
struct Work {
  double longest = 0, all = 0, steps = 0;
};

Work work_of(const Problem& p, const double* v) {
  const double tiles = std::ceil(p.query / p.rows), before = tiles - 1;
  const double prefix = p.context - p.query;
  const double rows_last = p.query - before * p.rows;
  const double step = v[kStep] * p.ideal_step * (p.narrow ? v[kNarrowStep] : 1);
  const double share = v[kTileBandwidth] * (p.narrow ? v[kNarrowBandwidth] : 1);
  const double per_byte = std::min(p.tiles(), p.units) / (share * p.memory);
  const double element = p.narrow ? 1 : 2;
  const double key_bytes = p.context * (p.key_dim + p.value_dim) * element / tiles;
  const double row_bytes = p.key_dim * element + 2 * p.value_dim;
  const double steps_last = std::ceil(p.context / p.columns);
  const double steps_most = std::ceil((prefix + before * p.rows) / p.columns);
  const double steps_before =
      before * prefix / p.columns + p.rows / p.columns * before * (before + 1) / 2;
  const double full = v[kTile] * p.kclk + (p.rows * row_bytes + key_bytes) * per_byte;
  // A tile of a single row group has the unit's tensor cores for itself.
  const double last = rows_last <= p.rows / 2 ? v[kShortTile] * p.kclk + 0.6 * step * steps_last
                                              : v[kTile] * p.kclk + step * steps_last;
  Work work;
  work.longest = last + (rows_last * row_bytes + key_bytes) * per_byte;
  work.all = p.sequences * p.heads * (before * full + step * steps_before + work.longest);
  if (before > 0) work.longest = std::max(work.longest, full + step * steps_most);
  work.steps = p.sequences * p.heads * (steps_before + steps_last);
  return work;
}

}  // namespace

const std::vector<ParameterInfo>& MlaPrefillFamily::parameters() const {
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
  };
  return table;
}

std::vector<double> MlaPrefillFamily::priors(const AcceleratorConfig& accelerator,
                                             Precision /*precision*/) const {
  // Of an H200. The traffic before the core is the same number of bytes on every device that was
  // fitted; the launch is that of five empty GEMMs.
  const double launch = accelerator.kernel.launch.value.base() * 1e6;
  return {5 * launch, 1.7 * launch, 0.3, 5.8, 4.8, 4.9, 1.4, 0.95, 1.6, 0.4, 0.6, 4300, 1.0};
}

KernelTime MlaPrefillFamily::time(const Kernel& kernel, const AcceleratorConfig& accelerator,
                                  const double* v) const {
  // Above this use of the tensor cores clocks fall; as fitted for prefill on H200 and H100.
  constexpr double kPowerFree = 0.32;
  const Problem p = problem_of(kernel, accelerator);
  const Work work = work_of(p, v);
  double core = makespan(p.tiles(), p.units, work.longest, work.all);
  const double matrix = p.ideal_step * work.steps / (p.units * core);
  core *= 1 + v[kPowerLoss] * core / (core + v[kPowerTime]) * std::max(0.0, matrix - kPowerFree);
  const double tokens = p.sequences * p.query;
  const double latent = 3 * p.key_dim;  // 512 + 64 columns of keys of 128 + 64
  const double assemble =
      tokens * (p.heads * (p.key_dim + p.value_dim) * v[kQueryBytes] + latent * v[kLatentBytes]) /
      p.memory;
  KernelTime time;
  time.launch_us = v[kLaunch] + (p.narrow ? v[kNarrowLaunch] : 0);
  const double body = assemble + std::max(core * p.more_work, p.matrix_us) +
                      v[kRamp] * std::min(1.0, p.tiles() / p.units);
  time.total_us = time.launch_us + body;
  time.bound = time.launch_us > body ? Bound::kLatency
               : assemble > core     ? Bound::kMemory
                                     : Bound::kTensor;
  return time;
}

std::optional<ResidualPoint> MlaPrefillFamily::residual_point(const Kernel& kernel,
                                                              const AcceleratorConfig& on) const {
  if (kernel.attention.backward) return std::nullopt;  // tables have forward passes only
  const Problem p = problem_of(kernel, on);
  ResidualPoint point;
  point.part = p.narrow ? 1 : 0;
  point.at = {0.6 * std::log2(p.query), 0.36 * std::log2(p.sequences), 0.36 * std::log2(p.heads),
              0.6 * std::log2(p.context / p.query)};
  return point;
}

}  // namespace orrery
