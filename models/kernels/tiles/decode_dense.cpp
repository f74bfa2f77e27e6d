// SPDX-License-Identifier: Apache-2.0
#include "models/kernels/tiles/decode_kernels.h"

namespace orrery {
namespace {

enum Parameter : std::size_t {
  kLaunch,            ///< us of the launch
  kMemoryEfficiency,  ///< share of the memory bandwidth
  kCacheShare,        ///< share of the L2 that keeps the cache from launch to launch
  kExponent,          ///< p of the p-norm of work, latency and traffic
  kBlock,             ///< kclk of a unit for a block
  kBlockDim,          ///< kclk of it for 128 columns
  kSome,              ///< share by which more than 8 queries take longer
  kMany,              ///< share by which more than 16 queries take longer
  kNarrow,            ///< factor of a block over an 8-bit cache
  kNarrowDim,         ///< factor of the part by columns over an 8-bit cache
  kStep,              ///< kclk of a step of 128 tokens and columns, of a unit's time
  kWait,              ///< kclk of a block beside its steps
  kStepLatency,       ///< kclk of a step, one after the other in a block
  kSplitLatency,      ///< kclk for each doubling of the parts that a context is split into
  kOutput,            ///< kclk of a unit for a row of results of 128 columns
};

DecodeTime time(const DecodeProblem& p, const double* v) {
  const double steps = std::ceil(p.seen / 128), jobs = p.kv_jobs();
  const double splits = p.parts > 0 ? p.parts
                                    : std::clamp(std::floor(p.units / jobs), 1.0,
                                                 std::max(1.0, std::ceil(steps / 2)));
  const double queries = 1 + (p.group > 8 ? v[kSome] : 0) + (p.group > 16 ? v[kMany] : 0);
  const double block = (v[kBlock] + v[kBlockDim] * p.width * (p.narrow ? v[kNarrowDim] : 1)) *
                       (p.narrow ? v[kNarrow] : 1) * queries;
  const double work =
      p.kclk * (jobs * splits / p.units * block + jobs * steps / p.units * v[kStep] * p.width);
  const double wait =
      p.kclk * (v[kWait] + v[kStepLatency] * steps / splits + v[kSplitLatency] * std::log2(splits));
  const double bytes = p.cache_bytes(p.seen);
  const double miss = missed(p, bytes, v[kCacheShare]);
  const double memory = traffic_us(p, bytes * miss, v[kMemoryEfficiency]);
  DecodeTime time;
  time.launch = v[kLaunch];
  time.after = p.kclk * v[kOutput] * p.sequences * p.heads * p.width / p.units;
  time.body = std::max(least_us(p, bytes), joined(v[kExponent], {work, wait, memory})) + time.after;
  keep_parts(time, {work, wait, memory}, {bytes, miss, jobs * splits, splits});
  return time;
}

/// Priors of a B200, where the launch is five times that of an empty GEMM: there is a second kernel
/// that rotates the query and appends to the cache.
std::vector<double> priors(const AcceleratorConfig& accelerator) {
  const double launch = accelerator.kernel.launch.value.base() * 1e6;
  return {5 * launch, 0.91, 0.47, 3.5,  1.52, 1.15, 0.26, 0.83,
          1.22,       0.1,  0.32, 0.39, 0.55, 1.52, 0.067};
}

}  // namespace

const DecodeKernel& dense_decode() {
  static const DecodeKernel kernel = {{{"dense_launch", "us", 0.1, 1000},
                                       {"dense_memory_efficiency", "1", 0.6, 1},
                                       {"dense_cache_share", "1", 0.02, 2},
                                       {"dense_exponent", "1", 1, 4},
                                       {"dense_block", "kclk", 0.01, 50},
                                       {"dense_block_dim", "kclk", 0.01, 50},
                                       {"dense_some", "1", 1e-2, 5},
                                       {"dense_many", "1", 1e-2, 5},
                                       {"dense_narrow", "1", 0.3, 3},
                                       {"dense_narrow_dim", "1", 1e-2, 3},
                                       {"dense_step", "kclk", 0.01, 50},
                                       {"dense_wait", "kclk", 0.01, 100},
                                       {"dense_step_latency", "kclk", 0.01, 50},
                                       {"dense_split_latency", "kclk", 0.01, 50},
                                       {"dense_output", "kclk", 1e-3, 10}},
                                      priors,
                                      time};
  return kernel;
}

}  // namespace orrery
