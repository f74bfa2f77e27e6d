// SPDX-License-Identifier: Apache-2.0
#include "models/kernels/tiles/latent_blocks.h"

#include <algorithm>
#include <cmath>

namespace orrery {
namespace {

constexpr double kFewHeadsTile = 16;
constexpr double kMostFewHeads = 32;
constexpr double kLongestPart = 1024;  ///< tokens of a block of few heads, beyond 32 heads
constexpr double kMostInCluster = 16;
/// Larger clusters run out of processing clusters before units: 128 blocks in clusters of 8 take
/// twice as long as 64 on a B200, in clusters of 4 they do not.
constexpr double kSmallCluster = 4;
constexpr double kClustered = 0.8;  ///< share of the units that larger clusters reach

/// Blocks that there is a unit for, at least one.
double idle(double units, double blocks) { return std::max(1.0, std::floor(units / blocks)); }

bool few_heads(double sequences, double heads, double context, double units) {
  if (heads <= kMostFewHeads) return true;
  const double blocks = sequences * std::ceil(heads / kFewHeadsTile);
  const double parts = std::min(std::ceil(context / 256), idle(units, blocks));
  return std::ceil(context / parts) <= kLongestPart && blocks <= units;
}

/// Splits contexts, then values, and puts parts together in a cluster where that fits.
void split_few_heads(LatentBlocks& plan, double jobs, double most_parts, double units,
                     bool single) {
  if (plan.parts > 1) {
    const bool fits = plan.parts <= kSmallCluster || jobs * plan.parts <= kClustered * units;
    const bool cluster = !single && plan.parts <= kMostInCluster && fits;
    plan.reduction = cluster ? LatentReduction::kCluster : LatentReduction::kMemory;
  }
  // A single sequence is to be fast: it takes units that others leave idle.
  const double blocks = jobs * plan.parts * (single ? 1 : 2);
  if (blocks > units) return;
  plan.values = 2 * blocks <= units ? 4 : 2;
  plan.parts = std::min(most_parts, idle(units, jobs * plan.values));
}

/// Pairs have the values split between them already.
void split_more_heads(LatentBlocks& plan, double jobs, double units) {
  if (plan.parts > 1) plan.reduction = LatentReduction::kSeparate;
  const double blocks = jobs * plan.parts;
  if (plan.kernel == LatentKernel::kKept && 2 * blocks <= units)
    plan.values = 4 * blocks <= units ? 4 : 2;
}

}  // namespace

LatentBlocks latent_blocks(double sequences, double heads, double context, double units) {
  LatentBlocks plan;
  double jobs = sequences;
  if (few_heads(sequences, heads, context, units)) {
    plan.tile = heads <= 8 ? 8 : kFewHeadsTile;
    plan.head_blocks = std::ceil(heads / plan.tile);
    jobs *= plan.head_blocks;
  } else {
    plan.step = 128;
    plan.kernel = heads <= 64 ? LatentKernel::kKept : LatentKernel::kPaired;
    plan.tile = heads <= 64 ? 64 : 128;
    plan.head_blocks = std::ceil(heads / plan.tile);
    jobs *= plan.head_blocks * (heads <= 64 ? 1 : 2);
  }
  const double most_parts = std::ceil(context / (2 * plan.step));
  plan.parts = std::min(most_parts, idle(units, jobs));
  if (plan.kernel == LatentKernel::kFewHeads)
    split_few_heads(plan, jobs, most_parts, units, sequences <= 1);
  else
    split_more_heads(plan, jobs, units);
  plan.blocks = jobs * plan.parts * plan.values;
  plan.rounds = std::ceil(plan.blocks / units);
  const bool clusters = plan.reduction == LatentReduction::kCluster && plan.parts > kSmallCluster;
  if (clusters && plan.blocks > kClustered * units) plan.rounds = 2;
  return plan;
}

}  // namespace orrery
