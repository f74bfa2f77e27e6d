// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>

#include "models/kernels/device/family.h"
#include "models/kernels/device/unit_work.h"
#include "models/kernels/tiles/decode_kernels.h"
#include "models/kernels/tiles/latent_blocks.h"
#include "sim/machine/kernel_model.h"

namespace orrery {
namespace {

/// Parameters in the order of MlaDecodeFamily::parameters(). A kclk is 1,000 clocks of a unit. A
/// step is 64 tokens of a context on Hopper and 128 or 256 on Blackwell (latent_blocks.h). "Narrow"
/// is a cache of 8 bits an element; factors for it multiply what 16-bit caches take.
enum Parameter : std::size_t {
  // All kernels.
  kLaunch,            ///< us of the launch, with the kernels that append to the cache
  kNarrowLaunch,      ///< factor of the launch, narrow
  kMemoryEfficiency,  ///< share of the memory bandwidth that a kernel reaches
  kCacheShare,        ///< share of the L2 that keeps latents from launch to launch
  kExponent,          ///< exponent of the p-norm that joins work and traffic
  kStep,              ///< kclk of a step
  kNarrowStep,        ///< factor of a step, narrow
  kCombine,           ///< kclk of putting the parts of a context together
  kRow,               ///< kclk for each head of a sequence, whatever its context
  kNarrowRow,         ///< factor of kRow, narrow
  // The kernel that deals all steps out in even shares (FlashMLA, on Hopper).
  kFewHeads,   ///< time of a step of few heads over that of one of 64 heads
  kNarrowFew,  ///< factor of few heads, narrow
  kSequence,   ///< steps that a sequence costs beside those of its context
  kMask,       ///< kclk of a context that ends inside a step
  // The kernels that split contexts into equal blocks (Blackwell).
  kBlock,       ///< kclk of a block of few heads, beside its steps
  kKeptBlock,   ///< factor of a block where it has more heads
  kKeptStep,    ///< kclk of a step of up to 64 heads
  kPairedStep,  ///< kclk of a step of up to 128 heads on a pair of units
  kNarrowKept,  ///< factor of the steps of both, narrow
  kMiss,        ///< kclk by which a step of 256 tokens of 16 bits is longer from memory
  kHalf,        ///< time of a block that makes half of the values over one that makes all
  kQuarter,     ///< time of a block that makes a quarter of the values over one that makes all
  kPart,        ///< kclk of putting together, for each part of a context
  kSeparate,    ///< kclk of a kernel of its own that puts parts together
  kEnd,
};

/// Attention of new tokens over their latents on one device.
struct Problem {
  DecodeProblem device;         ///< units, clock, memory and cache of the device
  double sequences = 0;         ///< number of contexts
  double heads = 0;             ///< heads of a sequence, those of all its new tokens
  double key = 0, context = 0;  ///< columns of a latent; tokens that a sequence looks back on
  double steps = 0;             ///< steps of 64 tokens of a sequence, on average
  double bytes = 0;             ///< bytes of latents, queries and results
  double longest = 0;           ///< tokens by which the rules split all contexts; 0: context
  double splits = 0;            ///< parts of a context; 0: by the rules
  bool narrow = false;          ///< an 8-bit cache
  bool parts = false;           ///< contexts are split into equal blocks, not dealt out evenly
};

/// Sets the tokens that a sequence looks back on, with the steps and bytes that follow from them.
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
  p.device.reuse = kernel.reuse.base();
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
  p.parts = multiplies_apart(a);
  if (kernel.matrix_flops.base() > 0)
    p.device.matrix_us = (kernel.matrix_flops / matrix_peak(a, kernel)).base() * 1e6;
  return p;
}

/// What the blocks of a kernel do, in us beside launch and traffic.
struct Work {
  double work = 0;    ///< us of all steps, beside which bytes come from the memory
  double after = 0;   ///< us after the steps: putting parts together, masks
  double miss = 0;    ///< share of the bytes that comes from memory
  double blocks = 1;  ///< blocks of the launch
  double splits = 1;  ///< parts of a context
  double rounds = 0;  ///< rounds of blocks with a unit each; 0: blocks have even shares
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
  work.miss = missed(p.device, p.bytes, v[kCacheShare]);
  return work;
}

/// kclk of a step of 128 or 256 tokens by a block that makes all values.
double step_kclk(const LatentBlocks& plan, bool narrow, const double* v) {
  switch (plan.kernel) {
    case LatentKernel::kKept:
      return v[kKeptStep] * (narrow ? v[kNarrowKept] : 1);
    case LatentKernel::kPaired:
      return v[kPairedStep] * (narrow ? v[kNarrowKept] : 1);
    default:
      return v[kStep] * (narrow ? v[kNarrowStep] : 1);
  }
}

/// How contexts are split: by the rules, or into the parts that somebody asks for.
LatentBlocks division_of(const Problem& p) {
  const double longest = std::max(p.longest, p.context);
  LatentBlocks plan = latent_blocks(p.sequences, p.heads, longest, p.device.units);
  if (p.splits > 0) {
    plan.blocks *= p.splits / plan.parts;
    plan.parts = p.splits;
  }
  return plan;
}

/// Rounds of equal blocks, each of which works on a part of a context.
Work context_parts(const Problem& p, const double* v) {
  const LatentBlocks plan = division_of(p);
  Work work;
  work.blocks = plan.blocks;
  work.splits = plan.parts;
  work.rounds = plan.rounds;
  // Read over and over in the same order, a cache keeps what is a little smaller than itself and
  // loses what is a little larger: twice as steep as missed().
  const double between = std::max(p.bytes, p.device.reuse);
  const double kept = v[kCacheShare] * p.device.cache / between;
  work.miss = missed(1, kept * kept);
  const double values = plan.values > 2 ? v[kQuarter] : plan.values > 1 ? v[kHalf] : 1;
  const double block = v[kBlock] * (plan.kernel == LatentKernel::kFewHeads ? 1 : v[kKeptBlock]);
  // Blocks of the same latents get them from memory once.
  const double sharing = plan.head_blocks * (plan.kernel == LatentKernel::kPaired ? 2 : 1);
  const double late = p.narrow ? 0 : v[kMiss] * work.miss / sharing;
  const double steps = std::ceil(std::ceil(p.context / plan.parts) / plan.step);
  work.work =
      p.device.kclk * plan.rounds *
      (values * (block + steps * step_kclk(plan, p.narrow, v)) + steps * late * plan.step / 256);
  if (plan.reduction != LatentReduction::kNone) {
    const bool separate = plan.reduction == LatentReduction::kSeparate;
    work.after = p.device.kclk * (v[separate ? kSeparate : kCombine] + v[kPart] * plan.parts);
  }
  return work;
}

/// The time of a kernel by its summands, in us.
struct Sum {
  Work work;
  double launch = 0;  ///< us of the launch
  double body = 0;    ///< us of steps and traffic beside each other, without what comes after
  double memory = 0;  ///< us of the traffic alone
  double rows = 0;    ///< us that grow with the heads alone
};

Sum sum_of(const Problem& p, const double* v) {
  Sum sum;
  const Work work = sum.work = p.parts ? context_parts(p, v) : even_shares(p, v);
  sum.memory = traffic_us(p.device, p.bytes * work.miss, v[kMemoryEfficiency]);
  sum.body =
      std::max(least_us(p.device, p.bytes), joined(v[kExponent], {work.work, sum.memory, 0}));
  sum.rows = p.device.kclk * v[kRow] * (p.narrow ? v[kNarrowRow] : 1) * p.sequences * p.heads /
             p.device.units;
  sum.launch = v[kLaunch] * (p.narrow ? v[kNarrowLaunch] : 1);
  return sum;
}

/// The same time as the player of decode blocks takes it (decode_blocks.cpp).
DecodeTime as_decode(const Problem& p, const Sum& sum) {
  const Work& work = sum.work;
  DecodeTime time;
  time.launch = sum.launch;
  time.after = work.after + sum.rows;
  time.body = sum.body + time.after;
  keep_parts(time, {work.work, 0, sum.memory}, {p.bytes, work.miss, work.blocks, work.splits});
  time.rounds = work.rounds;
  return time;
}

/// The problem whose context and steps are the means over sequences of unequal lengths.
Problem all_steps(Problem p, const Kernel& kernel) {
  const std::vector<std::int64_t>& lengths = kernel.attention.lengths;
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
  return p;
}

/// Latent attention of new tokens, absorbed: all heads of a sequence attend to one latent. Blocks
/// of 64 heads take even shares of all steps of all sequences (FlashMLA's schedule), or whole parts
/// of a context by TensorRT-LLM's rules on Blackwell (latent_blocks.h); parts of a sequence are put
/// together afterwards.
class MlaDecodeFamily final : public KernelFamily {
 public:
  const std::vector<ParameterInfo>& parameters() const override {
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
        {"kept_block", "1", 0.3, 10},
        {"kept_step", "kclk", 0.01, 50},
        {"paired_step", "kclk", 0.01, 50},
        {"narrow_kept", "1", 0.1, 3},
        {"miss", "kclk", 1e-3, 50},
        {"half_values", "1", 0.2, 1},
        {"quarter_values", "1", 0.1, 1},
        {"part", "kclk", 1e-3, 10},
        {"separate", "kclk", 0.01, 100},
    };
    return table;
  }

  std::vector<double> priors(const AcceleratorConfig& accelerator, Precision) const override {
    // Fits of a B200 and of an H200; both launches are about 4.5 times that of an empty GEMM.
    const double launch = accelerator.kernel.launch.value.base() * 1e6;
    if (multiplies_apart(accelerator)) {
      return {4.4 * launch, 0.92, 1.0, 0.69, 2.6, 6.9, 0.58, 1.9, 0.05, 3.3, 0.81, 1.0,
              2.9,          1.9,  2.7, 1.8,  3.6, 1.8, 0.82, 3.7, 0.8,  0.5, 0.33, 10.3};
    }
    return {4.4 * launch, 0.92, 0.95, 0.22, 2.5, 3.0, 0.95, 7.9, 0.19, 1.4, 0.81, 1.0,
            2.9,          1.9,  2.7,  1.8,  3.6, 1.8, 0.82, 3.7, 0.8,  0.5, 0.33, 10.3};
  }

  KernelTime time(const Kernel& kernel, const AcceleratorConfig& accelerator,
                  const double* v) const override {
    const Problem p = problem_of(kernel, accelerator);
    const Sum sum = sum_of(p, v);
    KernelTime time;
    time.launch_us = sum.launch;
    time.total_us = time.launch_us + sum.body + sum.work.after + sum.rows;
    time.loaded_bytes = p.bytes;
    time.memory_bytes = p.bytes * sum.work.miss;
    return time;
  }

  std::optional<ResidualPoint> residual_point(const Kernel& kernel, const AcceleratorConfig& on,
                                              const double* /*values*/) const override {
    const Problem p = problem_of(kernel, on);
    ResidualPoint point;
    point.part = p.narrow ? 1 : 0;
    double heads = p.heads;
    if (p.parts) {
      // Blackwell's kernels err alike for all heads that fill up to the same tiles.
      const LatentBlocks plan = latent_blocks(p.sequences, p.heads, p.context, p.device.units);
      point.part += 2 * static_cast<int>(plan.kernel);
      heads = plan.tile * plan.head_blocks;
    }
    point.at = {0.45 * std::log2(p.context), 0.6 * std::log2(p.sequences), 0.3 * std::log2(heads)};
    return point;
  }

  /// Blocks by decode_blocks.cpp: even shares of all steps, or parts of contexts.
  std::optional<BlockPlan> blocks(const Kernel& kernel, const AcceleratorConfig& accelerator,
                                  const double* v) const override {
    const Problem p = problem_of(kernel, accelerator);
    const DecodeTime whole = as_decode(p, sum_of(p, v));
    DecodeProblem device = p.device;
    device.sequences = p.sequences;
    const std::vector<std::int64_t>& lengths = kernel.attention.lengths;
    if (!p.parts) {
      const Problem all = lengths.empty() ? p : all_steps(p, kernel);
      return even_plan(kernel, device, whole, as_decode(all, sum_of(all, v)));
    }
    return decode_plan(kernel, device, whole, [&](double tokens, double splits) {
      Problem alike = p;
      look_back(alike, kernel, tokens);
      if (!lengths.empty())
        alike.longest = static_cast<double>(*std::max_element(lengths.begin(), lengths.end()));
      alike.splits = splits;
      return as_decode(alike, sum_of(alike, v));
    });
  }
};

const RegisterTileFamily<MlaDecodeFamily> registered_mla_decode_tiles(
    KernelClass::kMlaDecode, "latent attention of new tokens by splits of the cache");

}  // namespace
}  // namespace orrery
