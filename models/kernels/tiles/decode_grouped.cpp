// SPDX-License-Identifier: Apache-2.0
#include "models/kernels/tiles/decode_kernels.h"

namespace orrery {
namespace {

enum Parameter : std::size_t {
  kLaunch,            ///< us of the launch
  kMemoryEfficiency,  ///< share of the memory bandwidth
  kCacheShare,        ///< share of the L2 that keeps the cache from launch to launch
  kExponent,          ///< p of the p-norm of work, latency and traffic
  kBlock,             ///< kclk of a block beside its steps but the first
  kBlockDim,          ///< kclk of it for 128 columns
  kMany,              ///< share by which more than 16 queries take longer
  kManyDim,           ///< share that 128 columns more add to that
  kStep,              ///< kclk of a further step of 128 tokens and columns, of a unit's time
  kStepLatency,       ///< kclk of a further step, one after the other in a block
  kIdleBlock,         ///< kclk of a block outside the window
  kCombine,           ///< kclk of putting together the parts of a split context
  kCombinePart,       ///< kclk more for each part
  kCombineRows,       ///< kclk of a unit for a row of it of 128 columns
};

DecodeTime time(const DecodeProblem& p, const double* v) {
  const double splits = context_splits(p), blocks = p.kv_jobs() * splits;
  const DecodeSteps steps = decode_steps(p, splits, 128);
  const double many = p.group > 16 ? 1 + v[kMany] * (1 + v[kManyDim] * p.padded) : 1;
  const double first = (v[kBlock] + v[kBlockDim] * p.padded) * many;
  const double active = blocks * steps.active;
  const double work =
      p.kclk * (std::max(std::ceil(active / p.units), 1.0) * first +
                std::max(steps.all - active, 0.0) / p.units * v[kStep] * p.padded * many +
                v[kIdleBlock] * (blocks - active) / p.units);
  const double wait = p.kclk * (first + v[kStepLatency] * (steps.most - 1) * p.padded);
  const double bytes = p.cache_bytes(std::max(p.seen, 32.0)) + p.query_bytes();
  const double miss = missed(p, bytes, v[kCacheShare]);
  const double memory = traffic_us(p, bytes * miss, v[kMemoryEfficiency]);
  DecodeTime time;
  time.launch = v[kLaunch];
  if (splits > 1) {
    const double rows = p.sequences * p.heads * splits * p.padded;
    time.after =
        p.kclk * (v[kCombine] + v[kCombinePart] * splits + v[kCombineRows] * rows / p.units);
  }
  time.body = std::max(least_us(p, bytes), joined(v[kExponent], {work, wait, memory})) + time.after;
  keep_parts(time, {work, wait, memory}, {bytes, miss, blocks, splits});
  return time;
}

/// Priors of an H200, where the launch is 1.3 times that of an empty GEMM.
std::vector<double> priors(const AcceleratorConfig& accelerator) {
  const double launch = accelerator.kernel.launch.value.base() * 1e6;
  return {1.3 * launch, 0.95, 0.26, 1.5, 6.8, 2.3, 0.12, 1.5, 1.3, 3.5, 5.3, 2.2, 0.09, 0.08};
}

}  // namespace

const DecodeKernel& grouped_decode() {
  static const DecodeKernel kernel = {{{"grouped_launch", "us", 0.1, 1000},
                                       {"grouped_memory_efficiency", "1", 0.6, 1},
                                       {"grouped_cache_share", "1", 0.02, 2},
                                       {"grouped_exponent", "1", 1, 4},
                                       {"grouped_block", "kclk", 0.1, 100},
                                       {"grouped_block_dim", "kclk", 0.01, 50},
                                       {"grouped_many", "1", 1e-3, 3},
                                       {"grouped_many_dim", "1", 1e-2, 10},
                                       {"grouped_step", "kclk", 0.01, 50},
                                       {"grouped_step_latency", "kclk", 0.01, 50},
                                       {"grouped_idle_block", "kclk", 0.01, 50},
                                       {"grouped_combine", "kclk", 0.01, 100},
                                       {"grouped_combine_part", "kclk", 1e-3, 10},
                                       {"grouped_combine_rows", "kclk", 1e-3, 10}},
                                      priors,
                                      time};
  return kernel;
}

}  // namespace orrery
