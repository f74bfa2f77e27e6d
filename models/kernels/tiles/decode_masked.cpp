// SPDX-License-Identifier: Apache-2.0
#include "models/kernels/tiles/decode_kernels.h"

namespace orrery {
namespace {

enum Parameter : std::size_t {
  kLaunch,            ///< us of the launch
  kMemoryEfficiency,  ///< share of the memory bandwidth
  kCacheShare,        ///< share of the L2 that keeps the cache from launch to launch
  kExponent,          ///< p of the p-norm of latency, instructions and traffic
  kStart,             ///< kclk until a block has its first keys
  kStartNarrow,       ///< kclk of it that heads below 128 columns save
  kStartKeys,         ///< kclk more once a block has 64 keys
  kFirstStep,         ///< kclk once a block has 512 keys or more, one block a unit
  kStep,              ///< kclk of each further pass over 512 keys
  kStepSplit,         ///< kclk of it more where the context is split
  kTwin,              ///< share of it, where some units have a second block
  kStepTwo,           ///< kclk of a pass over 256 keys, two blocks a unit
  kStepMany,          ///< kclk of a pass over 128 keys, more blocks
  kQueue,             ///< kclk more with more than two blocks a unit
  kBlock,             ///< kclk of a unit's issue slots for a block
  kBlockKeys,         ///< kclk of it that come with the first 16 keys
  kKey,               ///< clocks of a unit's issue slots for a key of 128 columns
  kFreeKeys,          ///< keys that hide under the rest
  kCombine,           ///< kclk of putting together the parts of a split context
};

/// What a block gets, in keys of 128 columns.
struct Share {
  double keys = 0;     ///< keys inside the window
  double context = 0;  ///< keys of the whole context
  double blocks = 0, splits = 1;
};

/// The context is split, without regard to the window, only where heads leave units idle, into
/// parts of 256 keys or more.
Share share_of(const DecodeProblem& p) {
  Share share;
  const double jobs = p.sequences * p.heads;
  const double keys = p.context * p.width;
  if (p.parts > 0)
    share.splits = p.parts;
  else if (keys >= 500)
    share.splits = std::max(1.0, std::min(std::ceil(keys / 256), std::floor(p.units / jobs)));
  share.context = keys / share.splits;
  share.keys = std::min(share.context, p.seen * p.width);
  share.blocks = jobs * share.splits;
  return share;
}

/// A block's passes over its keys, one after the other: a block alone on its unit has 512 lanes'
/// worth of keys a pass, two have 256 each, more have 128. The first pass is a matter of how large
/// a context the block is made for.
double latency(const DecodeProblem& p, const Share& share, const double* v) {
  const auto passes = [&](double keys) {
    return std::ceil((share.keys + p.width) / keys) - 1;  // the new token is a key as well
  };
  const double start = v[kStart] - (p.dim < 128 ? v[kStartNarrow] : 0) +
                       v[kStartKeys] * std::min(share.keys / 64, 1.0);
  if (share.blocks > 2 * p.units) return start + v[kQueue] + v[kStepMany] * passes(128);
  double alone = start;
  if (share.context + p.width > 512) {
    const double split = v[kStepSplit] * (1 - 1 / share.splits);
    const double further = std::min(std::ceil((share.context + p.width) / 512) - 2, passes(512));
    alone += v[kFirstStep] + (v[kStep] + split) * std::max(0.0, further);
  }
  if (share.blocks <= p.units) return alone;
  if (share.blocks < 1.3 * p.units && p.dim >= 128) return v[kTwin] * alone;
  return start + v[kStepTwo] * passes(256);
}

DecodeTime time(const DecodeProblem& p, const double* v) {
  const Share share = share_of(p);
  const double bytes = p.cache_bytes(p.seen) + p.query_bytes();
  const double miss = missed(p, bytes, v[kCacheShare]);
  const double memory = traffic_us(p, bytes * miss, v[kMemoryEfficiency]);
  const double issue = p.kclk * share.blocks / p.units *
                       (v[kBlock] + v[kBlockKeys] * std::clamp((share.keys - 6) / 10, 0.0, 1.0) +
                        1e-3 * v[kKey] * std::max(0.0, share.keys - v[kFreeKeys]));
  const double wait = p.kclk * latency(p, share, v);
  DecodeTime time;
  time.launch = v[kLaunch];
  time.after = share.splits > 1 ? p.kclk * v[kCombine] : 0;
  time.body =
      std::max(least_us(p, bytes), joined(v[kExponent], {wait, issue, memory})) + time.after;
  keep_parts(time, {issue, wait, memory}, {bytes, miss, share.blocks, share.splits});
  return time;
}

/// Priors of an H200, where the launch is 1.1 times that of an empty GEMM.
std::vector<double> priors(const AcceleratorConfig& accelerator) {
  const double launch = accelerator.kernel.launch.value.base() * 1e6;
  return {1.1 * launch, 0.95, 0.37, 2.0, 10.4, 0.72, 5.11, 24.5, 6.0, 9.5,
          1.9,          4.25, 3.59, 8.0, 2.35, 0.92, 17.6, 88,   9.44};
}

}  // namespace

const DecodeKernel& masked_decode() {
  static const DecodeKernel kernel = {{{"masked_launch", "us", 0.1, 1000},
                                       {"masked_memory_efficiency", "1", 0.6, 1},
                                       {"masked_cache_share", "1", 0.02, 2},
                                       {"masked_exponent", "1", 1, 4},
                                       {"masked_start", "kclk", 0.1, 100},
                                       {"masked_start_narrow", "kclk", 0.01, 5},
                                       {"masked_start_keys", "kclk", 0.1, 50},
                                       {"masked_first_step", "kclk", 0.1, 100},
                                       {"masked_step", "kclk", 0.1, 100},
                                       {"masked_step_split", "kclk", 0.01, 100},
                                       {"masked_twin", "1", 1, 3},
                                       {"masked_step_two", "kclk", 0.1, 100},
                                       {"masked_step_many", "kclk", 0.1, 100},
                                       {"masked_queue", "kclk", 0.1, 100},
                                       {"masked_block", "kclk", 0.1, 50},
                                       {"masked_block_keys", "kclk", 0.01, 50},
                                       {"masked_key", "clk", 1, 1000},
                                       {"masked_free_keys", "1", 1, 500},
                                       {"masked_combine", "kclk", 0.1, 100}},
                                      priors,
                                      time};
  return kernel;
}

}  // namespace orrery
