// SPDX-License-Identifier: Apache-2.0
#include "models/kernels/tiles/decode_kernels.h"

namespace orrery {
namespace {

enum Parameter : std::size_t {
  kLaunch,            ///< us of the launch
  kLaunchNarrow,      ///< kclk more for heads below 128 columns
  kMemoryEfficiency,  ///< share of the memory bandwidth
  kCacheShare,        ///< share of the L2 that keeps the cache from launch to launch
  kExponent,          ///< p of the p-norm of work, latency and traffic
  kBlock,             ///< kclk of a unit for a block and its first step
  kBlockDim,          ///< kclk of it for 128 columns
  kSome,              ///< share by which more than 8 queries take longer
  kMany,              ///< share by which more than 16 queries take longer
  kAlone,             ///< factor where a unit holds only one block
  kMiss,              ///< kclk of a block that waits for memory, shared by those of a unit
  kStep,              ///< kclk of a further step of 64 tokens and 128 columns, of a unit's time
  kStepMany,          ///< share by which more than 16 queries make it longer
  kIdleBlock,         ///< kclk of a block outside the window
  kWait,              ///< kclk of the first step of a block
  kWaitSome,          ///< kclk more for more than 8 queries
  kWaitMany,          ///< kclk more for more than 16
  kWaitDim,           ///< kclk more for 128 columns beyond the first
  kStepLatency,       ///< kclk of a further step, one after the other in a block
  kStepLatencyDim,    ///< kclk of it for 128 columns
  kStepLatencySome,   ///< kclk more for more than 8 queries
  kStepLatencyMany,   ///< kclk more for more than 16
  kSecondStep,   ///< share of a further step where there is one only: its keys are on their way
  kCombine,      ///< kclk of putting together the parts of a split context
  kCombineRows,  ///< kclk of a unit for a row of it of 128 columns
};

constexpr double kTokens = 64;  ///< tokens of a step

/// Blocks that a unit holds: many queries or wide heads need more of its shared memory.
double resident_blocks(const DecodeProblem& p) {
  if (p.group > 8 && p.dim > 128) return 1;
  return p.group > 16 ? 2 : 4;
}

double work_us(const DecodeProblem& p, double blocks, const DecodeSteps& steps, double miss,
               const double* v) {
  const double resident = resident_blocks(p);
  const double queries = 1 + (p.group > 8 ? v[kSome] : 0) + (p.group > 16 ? v[kMany] : 0);
  const double block =
      (v[kBlock] + v[kBlockDim] * p.padded) * queries * (resident == 1 ? v[kAlone] : 1) +
      v[kMiss] * miss / resident;
  const double active = blocks * steps.active;
  const double waves = active / p.units;
  return p.kclk * ((resident == 1 ? std::ceil(waves) : waves) * block +
                   std::max(steps.all - active, 0.0) / p.units * v[kStep] * p.padded *
                       (p.group > 16 ? 1 + v[kStepMany] : 1) +
                   v[kIdleBlock] * (blocks - active) / p.units);
}

double wait_us(const DecodeProblem& p, const DecodeSteps& steps, const double* v) {
  const double some = p.group > 8 ? 1 : 0, many = p.group > 16 ? 1 : 0;
  const double steps_after = steps.most == 2 ? v[kSecondStep] : steps.most - 1;
  const double first = v[kWait] + v[kWaitSome] * some + v[kWaitMany] * many +
                       v[kWaitDim] * std::max(p.padded - 1, 0.0);
  const double further = v[kStepLatency] + v[kStepLatencyDim] * p.padded +
                         v[kStepLatencySome] * some + v[kStepLatencyMany] * many;
  return p.kclk * (first + further * steps_after);
}

DecodeTime time(const DecodeProblem& p, const double* v) {
  const double splits = context_splits(p);
  const DecodeSteps steps = decode_steps(p, splits, kTokens);
  const double bytes = p.cache_bytes(std::max(p.seen, 32.0)) + p.query_bytes();
  const double miss = missed(p, bytes, v[kCacheShare]);
  const double memory = traffic_us(p, bytes * miss, v[kMemoryEfficiency]);
  const double work = work_us(p, p.kv_jobs() * splits, steps, miss, v);
  const double wait = wait_us(p, steps, v);
  DecodeTime time;
  time.launch = v[kLaunch] + (p.dim < 128 ? p.kclk * v[kLaunchNarrow] : 0);
  if (splits > 1) {
    const double rows = p.sequences * p.heads * splits * p.padded;
    time.after = p.kclk * (v[kCombine] + v[kCombineRows] * rows / p.units);
  }
  time.body = std::max(least_us(p, bytes), joined(v[kExponent], {work, wait, memory})) + time.after;
  keep_parts(time, {work, wait, memory}, {bytes, miss, p.kv_jobs() * splits, splits});
  time.least_blocks = resident_blocks(p);
  return time;
}

/// Priors of an H200, where the launch is 1.2 times that of an empty GEMM.
std::vector<double> priors(const AcceleratorConfig& accelerator) {
  const double launch = accelerator.kernel.launch.value.base() * 1e6;
  return {1.2 * launch, 3.8, 0.95, 0.4, 2.35, 0.9,  1.53, 0.47, 0.78, 1.46, 2.3, 0.91, 0.89,
          0.37,         5.6, 1.25, 3.4, 0.18, 1.76, 0.28, 0.8,  1.2,  0.32, 2.2, 0.042};
}

}  // namespace

const DecodeKernel& narrow_decode() {
  static const DecodeKernel kernel = {{{"narrow_launch", "us", 0.1, 1000},
                                       {"narrow_launch_narrow", "kclk", 0.01, 20},
                                       {"narrow_memory_efficiency", "1", 0.6, 1},
                                       {"narrow_cache_share", "1", 0.02, 2},
                                       {"narrow_exponent", "1", 1, 4},
                                       {"narrow_block", "kclk", 0.01, 50},
                                       {"narrow_block_dim", "kclk", 0.01, 50},
                                       {"narrow_some", "1", 1e-2, 5},
                                       {"narrow_many", "1", 1e-2, 5},
                                       {"narrow_alone", "1", 1, 4},
                                       {"narrow_miss", "kclk", 0.01, 50},
                                       {"narrow_step", "kclk", 0.01, 50},
                                       {"narrow_step_many", "1", 1e-2, 5},
                                       {"narrow_idle_block", "kclk", 0.01, 50},
                                       {"narrow_wait", "kclk", 0.1, 100},
                                       {"narrow_wait_some", "kclk", 0.01, 50},
                                       {"narrow_wait_many", "kclk", 0.01, 50},
                                       {"narrow_wait_dim", "kclk", 0.01, 50},
                                       {"narrow_step_latency", "kclk", 0.01, 50},
                                       {"narrow_step_latency_dim", "kclk", 0.01, 50},
                                       {"narrow_step_latency_some", "kclk", 0.01, 50},
                                       {"narrow_step_latency_many", "kclk", 0.01, 50},
                                       {"narrow_second_step", "1", 1e-2, 1},
                                       {"narrow_combine", "kclk", 0.01, 100},
                                       {"narrow_combine_rows", "kclk", 1e-3, 10}},
                                      priors,
                                      time};
  return kernel;
}

}  // namespace orrery
