// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>

#include "models/kernels/tiles/decode_blocks.h"
#include "models/kernels/tiles/decode_kernels.h"
#include "models/kernels/tiles/mla.h"
#include "models/kernels/tiles/unit_clock.h"
#include "sim/machine/kernel_model.h"

namespace orrery {
namespace {

/// Of both kernels, then of the one with even shares (FlashMLA), then of the one with parts of a
/// context (Blackwell).
enum Parameter : std::size_t {
  kLaunch,            ///< us, with the kernels that append to the cache
  kNarrowLaunch,      ///< of it, over an 8-bit cache
  kMemoryEfficiency,  ///< share of the memory bandwidth
  kCacheShare,        ///< of the L2 that keeps latents from launch to launch
  kExponent,          ///< of the p-norm of work, wait and traffic
  kStep,              ///< kclk of a unit for a step
  kNarrowStep,        ///< of it, over an 8-bit cache
  kCombine,           ///< kclk of putting together parts of a context
  kRow,               ///< kclk of a unit for the row of a head
  kNarrowRow,         ///< of it, over an 8-bit cache
  kFewHeads,          ///< share: time of a step of few heads, of a step of 64
  kNarrowFew,         ///< of it, over an 8-bit cache
  kSequence,          ///< steps that a sequence takes beside its own
  kMask,              ///< kclk of a context that ends inside a step
  kBlock,             ///< kclk of a unit for a block
  kStart,             ///< kclk until a block has its first latents
  kWaitStep,          ///< kclk of a step, one after the other in a block
  kWaitMiss,          ///< kclk more where the latents come from memory
  kHeads,             ///< share by which a step of 128 heads takes longer than one of few
  kNarrowHeads,       ///< the same over an 8-bit cache
  kPart,              ///< kclk more for each part of a context
  kEnd,
};

/// New tokens over their latents on one device.
struct Problem {
  DecodeProblem device;  ///< units, clock, memory and cache of it
  double sequences = 0, heads = 0, key = 0, context = 0;
  double steps = 0;  ///< of 64 tokens of a sequence, on average
  double bytes = 0;
  double splits = 0;  ///< parts of a context; 0: by the rule
  bool narrow = false, parts = false;
};

/// Of the same problem, contexts of that many tokens.
void look_back(Problem& p, const Kernel& kernel, double tokens) {
  const auto window = static_cast<double>(kernel.attention.window);
  p.context = window > 0 ? std::min(tokens, window) : tokens;
  p.steps = std::ceil(p.context / 64);
  const double value = p.key * 8 / 9;  // 512 of 576 latent columns are values
  const double queries = p.sequences * p.heads * 2 * p.key;
  const double latents = p.sequences * p.context * p.key;
  p.bytes = latents * (p.narrow ? 1 : 2) + queries + p.sequences * p.heads * 2 * value;
}

Problem problem_of(const Kernel& kernel, const AcceleratorConfig& a) {
  Problem p;
  p.device = device_of(a);
  p.sequences = static_cast<double>(std::max<std::int64_t>(1, kernel.attention.sequences));
  p.heads = static_cast<double>(kernel.batch) / p.sequences *
            static_cast<double>(std::max<std::int64_t>(1, kernel.m));
  p.key = static_cast<double>(kernel.k);
  p.narrow = kernel.attention.wide_queries || element_bytes(kernel.precision) < 2;
  look_back(p, kernel, static_cast<double>(std::max<std::int64_t>(1, kernel.n)));
  if (!p.narrow && kernel.read.base() > 0) {
    const double latents = p.sequences * p.context * p.key;
    p.narrow = kernel.read.base() - p.sequences * p.heads * 2 * p.key < 1.5 * latents;
    look_back(p, kernel, p.context);
  }
  p.parts = a.core && a.core->matrix_tile && a.core->matrix_tile->rows >= 128;
  if (kernel.matrix_flops.base() > 0)
    p.device.matrix_us = (kernel.matrix_flops / matrix_peak(a, kernel.precision)).base() * 1e6;
  return p;
}

/// us of one kernel beside launch and traffic.
struct Work {
  double work = 0, wait = 0, after = 0;
  double blocks = 1, splits = 1;
};

/// All steps of 64 tokens of all sequences, and a few more a sequence, in even shares; a block
/// takes 64 heads.
Work even_shares(const Problem& p, const double* v) {
  const double steps = p.steps;
  const double heads = std::min(p.heads, 64.0) / 64;
  const double few = v[kFewHeads] * (p.narrow ? v[kNarrowFew] : 1);
  const double blocks_of_heads = std::ceil(p.heads / 64);
  const double lanes = std::max(1.0, std::floor(p.device.units / blocks_of_heads));
  const double rounds = std::max(1.0, std::ceil(blocks_of_heads / p.device.units));
  const double share =
      rounds * std::max(1.0, std::ceil(p.sequences * (steps + v[kSequence]) / lanes));
  Work work;
  work.blocks = lanes * blocks_of_heads;
  work.work =
      p.device.kclk * share * v[kStep] * (p.narrow ? v[kNarrowStep] : 1) * std::max(few, heads);
  if (share < steps && steps > 1) work.after += p.device.kclk * v[kCombine];
  if (std::fmod(p.context, 64) > 0) work.after += p.device.kclk * v[kMask];
  return work;
}

/// A block takes a part of a context in steps of 128 tokens, up to 128 heads at a time; 17 to 32
/// heads are two blocks of 16. Contexts of more than two steps are split over idle units, into 32
/// parts at most: found from the times of the B200's table.
Work context_parts(const Problem& p, const double* v) {
  constexpr double kMostParts = 32;
  const double steps = std::ceil(p.context / 128);
  const double blocks_of_heads = p.heads > 16 && p.heads <= 32 ? 2 : std::ceil(p.heads / 128);
  const double jobs = p.sequences * blocks_of_heads;
  const double parts = p.splits > 0 ? p.splits
                       : steps <= 2 ? 1
                                    : std::clamp(std::floor(p.device.units / jobs), 1.0,
                                                 std::min(steps, kMostParts));
  const double heads = p.heads / blocks_of_heads / 128;
  const double longer = 1 + (p.narrow ? v[kNarrowHeads] : v[kHeads]) * std::min(1.0, heads);
  const double narrow = p.narrow ? v[kNarrowStep] : 1;
  const double miss = missed(p.bytes, v[kCacheShare] * p.device.cache);
  Work work;
  work.work = p.device.kclk / p.device.units *
              (jobs * steps * v[kStep] * narrow * longer + jobs * parts * v[kBlock]);
  work.wait = p.device.kclk * (v[kStart] + std::ceil(steps / parts) * longer * narrow *
                                               (v[kWaitStep] + v[kWaitMiss] * miss));
  if (parts > 1) work.after = p.device.kclk * (v[kCombine] + v[kPart] * parts);
  work.blocks = jobs * parts;
  work.splits = parts;
  return work;
}

/// A kernel put together.
struct Sum {
  Work work;
  double launch = 0, body = 0;  ///< body: without putting parts together, and rows
  double memory = 0, rows = 0, miss = 1;
};

Sum sum_of(const Problem& p, const double* v) {
  Sum sum;
  const Work work = sum.work = p.parts ? context_parts(p, v) : even_shares(p, v);
  sum.miss = missed(p.bytes, v[kCacheShare] * p.device.cache);
  sum.memory = traffic_us(p.device, p.bytes * sum.miss, v[kMemoryEfficiency]);
  sum.body = std::max(least_us(p.device, p.bytes),
                      joined(v[kExponent], {work.work, work.wait, sum.memory}));
  sum.rows = p.device.kclk * v[kRow] * (p.narrow ? v[kNarrowRow] : 1) * p.sequences * p.heads /
             p.device.units;
  sum.launch = v[kLaunch] * (p.narrow ? v[kNarrowLaunch] : 1);
  return sum;
}

DecodeTime as_decode(const Problem& p, const Sum& sum) {
  const Work& work = sum.work;
  DecodeTime time;
  time.launch = sum.launch;
  time.after = work.after + sum.rows;
  time.body = sum.body + time.after;
  keep_parts(time, {work.work, work.wait, sum.memory},
             {p.bytes, sum.miss, work.blocks, work.splits});
  return time;
}

}  // namespace

const std::vector<ParameterInfo>& MlaDecodeFamily::parameters() const {
  static const std::vector<ParameterInfo> table = {
      {"launch", "us", 0.1, 1000},
      {"narrow_launch", "1", 0.3, 3},
      {"memory_efficiency", "1", 0.6, 1},
      {"cache_share", "1", 0.02, 2},
      {"exponent", "1", 1, 4},
      {"step", "kclk", 0.01, 100},
      {"narrow_step", "1", 0.1, 3},
      {"combine", "kclk", 0.01, 100},
      {"row", "kclk", 1e-3, 10},
      {"narrow_row", "1", 0.1, 10},
      {"few_heads", "1", 0.1, 1},
      {"narrow_few", "1", 0.3, 3},
      {"sequence", "1", 0.01, 20},
      {"mask", "kclk", 0.01, 20},
      {"block", "kclk", 0.01, 50},
      {"start", "kclk", 0.01, 50},
      {"wait_step", "kclk", 0.01, 50},
      {"wait_miss", "kclk", 0.01, 50},
      {"heads", "1", 1e-2, 5},
      {"narrow_heads", "1", 1e-2, 5},
      {"part", "kclk", 1e-3, 10},
  };
  return table;
}

std::vector<double> MlaDecodeFamily::priors(const AcceleratorConfig& accelerator,
                                            Precision /*precision*/) const {
  // Of an H200 and a B200; both launches are about 4.5 times that of an empty GEMM.
  const double launch = accelerator.kernel.launch.value.base() * 1e6;
  const bool parts = accelerator.core && accelerator.core->matrix_tile &&
                     accelerator.core->matrix_tile->rows >= 128;
  if (parts) {
    return {4.5 * launch, 0.85, 0.95, 0.55, 2.0, 3.85, 0.4,  1.0, 0.058, 3.0, 0.81,
            1.0,          2.9,  1.9,  5.6,  2.5, 0.33, 1.86, 0.1, 1.3,   0.38};
  }
  return {4.4 * launch, 0.92, 0.95, 0.22, 2.5, 3.0,  0.95, 7.9, 0.19, 1.4, 0.81,
          1.0,          2.9,  1.9,  5.6,  2.5, 0.33, 1.86, 0.1, 1.3,  0.38};
}

KernelTime MlaDecodeFamily::time(const Kernel& kernel, const AcceleratorConfig& accelerator,
                                 const double* v) const {
  const Problem p = problem_of(kernel, accelerator);
  const Sum sum = sum_of(p, v);
  const Work& work = sum.work;
  KernelTime time;
  time.launch_us = sum.launch;
  time.total_us = time.launch_us + sum.body + work.after + sum.rows;
  time.bound = bound_of(time.launch_us, time.total_us - time.launch_us,
                        std::max(work.work, work.wait), sum.memory, Bound::kTensor);
  return time;
}

std::optional<BlockPlan> MlaDecodeFamily::blocks(const Kernel& kernel,
                                                 const AcceleratorConfig& accelerator,
                                                 const double* v) const {
  Problem p = problem_of(kernel, accelerator);
  const DecodeTime of = as_decode(p, sum_of(p, v));
  DecodeProblem device = p.device;
  device.sequences = p.sequences;
  if (p.parts) {
    return decode_plan(kernel, device, of, [&](double tokens, double splits) {
      Problem q = p;
      look_back(q, kernel, tokens);
      q.splits = splits;
      return as_decode(q, sum_of(q, v));
    });
  }
  const std::vector<std::int64_t>& lengths = kernel.attention.lengths;
  if (lengths.empty()) return even_plan(kernel, device, of, of);
  double tokens = 0, steps = 0;
  for (const std::int64_t length : lengths) {
    Problem one = p;
    look_back(one, kernel, static_cast<double>(length));
    tokens += one.context;
    steps += one.steps;
  }
  const auto count = static_cast<double>(lengths.size());
  look_back(p, kernel, tokens / count);
  p.steps = steps / count;
  return even_plan(kernel, device, of, as_decode(p, sum_of(p, v)));
}

std::optional<ResidualPoint> MlaDecodeFamily::residual_point(const Kernel& kernel,
                                                             const AcceleratorConfig& on) const {
  const Problem p = problem_of(kernel, on);
  ResidualPoint point;
  point.part = p.narrow ? 1 : 0;
  point.at = {0.45 * std::log2(p.context), 0.6 * std::log2(p.sequences), 0.3 * std::log2(p.heads)};
  return point;
}

}  // namespace orrery
