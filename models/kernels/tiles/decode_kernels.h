// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <vector>

#include "models/kernels/device/block_schedule.h"
#include "models/kernels/device/family.h"
#include "sim/graph/kernel.h"

namespace orrery {

/// Tokens attending to a cache of keys and values on one device, as the kernels of a library see
/// them; us and bytes.
struct DecodeProblem {
  double sequences = 0;
  double heads = 0;     ///< heads of queries, times the new tokens of a sequence
  double kv_heads = 0;  ///< heads of keys and values of a sequence
  double context = 0;   ///< tokens in the cache
  double seen = 0;      ///< tokens of them inside the window
  double dim = 0;       ///< columns of a head
  double width = 0;     ///< columns of a head over 128
  double padded = 0;    ///< width on tensor cores, which compute 192 columns as 256
  double group = 1;     ///< queries that share a head of keys and values
  double element = 2;   ///< bytes of an element of the cache
  bool narrow = false;  ///< 8-bit cache
  bool windowed = false;
  double parts = 0;  ///< blocks that a context is split into; 0: by the rule of the kernel
  double units = 0;
  /// us of 1,000 clocks of a unit that moves 128 bytes a clock through its shared memory, as the
  /// multiprocessors of NVIDIA since Volta do. A unit n times as wide counts as n times as fast.
  double kclk = 0;
  double memory = 0;      ///< bytes per us
  double cache = 0;       ///< bytes; 0: none
  double cache_rate = 0;  ///< bytes per us
  double reuse = 0;       ///< bytes from one use of the cached tokens to the next (Kernel::reuse)
  double matrix_us = 0;   ///< the products at the matrix peak

  double kv_jobs() const { return sequences * kv_heads; }
  double cache_bytes(double tokens) const { return kv_jobs() * 2 * dim * element * tokens; }
  /// Queries in, results out, 16 bits each.
  double query_bytes() const { return 4 * sequences * heads * dim; }
};

/// What an accelerator gives one rank; the rest of the problem is empty.
DecodeProblem device_of(const AcceleratorConfig& accelerator);

/// What one kernel of a library says: launch, body, and what the body is made of.
struct DecodeTime {
  double launch = 0, body = 0;
  double work = 0;    ///< us of all units, each with its share of all blocks
  double wait = 0;    ///< us of the longest block
  double memory = 0;  ///< us of the traffic
  double bytes = 0;   ///< bytes of all blocks
  double miss = 1;    ///< share of them that comes from memory
  double blocks = 1;  ///< blocks of all sequences
  double splits = 1;  ///< blocks for each head of a sequence
  /// Rounds in `work` of blocks that have a unit for themselves; 0: all on a unit share its pipe.
  double rounds = 0;
  double after = 0;         ///< us of the body, once all blocks have ended
  double least_blocks = 1;  ///< blocks that a unit holds at once
};

/// One kernel of a library: a block of parameters of its own and the time as their function.
struct DecodeKernel {
  std::vector<ParameterInfo> parameters;
  std::vector<double> (*priors)(const AcceleratorConfig& accelerator);
  DecodeTime (*time)(const DecodeProblem& problem, const double* values);
};

/// One block for each head of queries: the keys go past it on the vector lanes ("masked multi-head
/// attention" of FasterTransformer and TensorRT-LLM). Caches of 8 bits are no faster.
const DecodeKernel& masked_decode();
/// One block for each head of keys and values and share of the context, all queries of the head
/// together on the tensor cores, 128 tokens a step (XQA of TensorRT-LLM, 16-bit caches).
const DecodeKernel& grouped_decode();
/// The same in steps of 64 tokens over 8-bit caches; several blocks fit on a multiprocessor.
const DecodeKernel& narrow_decode();
/// The kernels of Blackwell: blocks that take steps of 128 tokens of any head, both widths.
const DecodeKernel& dense_decode();

/// (a^p + b^p + c^p)^(1/p), scaled so that no power overflows.
inline double joined(double p, std::array<double, 3> terms) {
  const double largest = *std::max_element(terms.begin(), terms.end());
  if (!(largest > 0)) return 0;
  double sum = 0;
  for (const double term : terms)
    if (term > 0) sum += term == largest ? 1 : std::pow(term / largest, p);
  return largest * std::pow(sum, 1 / p);
}

/// Share of `bytes` that comes from memory when a cache of that size keeps the rest from launch to
/// launch.
inline double missed(double bytes, double cache) {
  if (!(cache > 0)) return 1;
  const double r2 = cache / bytes * (cache / bytes);
  return 1 / (1 + r2 * r2);
}

/// Share of what a kernel moves that comes from memory: in a step, as much as lies between two uses
/// of its tokens has to stay.
inline double missed(const DecodeProblem& p, double bytes, double cache_share) {
  return missed(p.reuse > 0 ? std::max(p.reuse, bytes) : bytes, cache_share * p.cache);
}

inline double traffic_us(const DecodeProblem& p, double bytes, double efficiency) {
  return bytes / (p.memory * efficiency);
}

/// No body is shorter than its products at the matrix peak, or than its bytes at the bandwidth of
/// the cache, through which all of them come.
inline double least_us(const DecodeProblem& p, double bytes) {
  return std::max(p.matrix_us, p.cache_rate > 0 ? bytes / p.cache_rate : 0);
}

/// Blocks that XQA splits the context of a head into: eight waves at most, and fewer the longer the
/// context, as putting the parts together costs as well. A rule of TensorRT-LLM, found from the
/// times of the tables.
inline double context_splits(const DecodeProblem& p) {
  if (p.parts > 0) return p.parts;
  double splits = std::floor(p.context / 128);
  splits = std::max(1.0, std::min(splits, std::round(std::sqrt(8 * splits))));
  const double waves = p.kv_jobs() * splits / p.units / 8;
  return waves > 1 ? std::max(1.0, std::floor(splits / waves)) : splits;
}

/// Steps of all blocks and of the longest, and the share of blocks that meets the window.
struct DecodeSteps {
  double all = 0, most = 0, active = 1;
};

/// @param tokens of a step
inline DecodeSteps decode_steps(const DecodeProblem& p, double splits, double tokens) {
  const double steps = std::ceil(p.seen / tokens);
  const double of_block = std::ceil(std::ceil(p.context / tokens) / splits);
  return {p.kv_jobs() * steps, std::min(of_block, steps),
          p.windowed ? std::min(1.0, std::ceil(steps / of_block) / splits) : 1.0};
}

/// Work, wait and traffic of a body in us, and bytes, their share from memory, blocks and splits.
inline void keep_parts(DecodeTime& time, std::array<double, 3> us, std::array<double, 4> amounts) {
  time.work = us[0], time.wait = us[1], time.memory = us[2];
  time.bytes = amounts[0], time.miss = amounts[1];
  time.blocks = amounts[2], time.splits = amounts[3];
}

/// What a kernel takes were all its sequences of one length.
/// @param tokens in the cache of a sequence
/// @param splits blocks for each head of a sequence; 0: by the rule of the kernel
using TimeAtLength = std::function<DecodeTime(double tokens, double splits)>;

/// The blocks of new tokens over their caches. A sequence has those that the kernel's rule gives
/// it, where the longest one says how contexts are split; they come sequence after sequence and
/// each has its share of the work, the wait and the traffic that the closed form knows of a kernel
/// whose sequences are all as long. Blocks of a unit share its pipe, all share memory and L2;
/// parts are put together once the last of them has ended. As many are resident as hide each
/// other's waits, in waves of equal size, which is what the closed form says of equal sequences;
/// by how much its p-norm is above the slowest of work, wait and traffic scales the blocks' time.
/// So equal sequences take the time of the closed form, and others what their order and the longest
/// of them make of it.
/// @param of what the kernel's closed form says, for the mean length
BlockPlan decode_plan(const Kernel& kernel, const DecodeProblem& device, const DecodeTime& of,
                      const TimeAtLength& at);

/// The same for blocks that do equal parts of all sequences, however long.
BlockPlan even_plan(const Kernel& kernel, const DecodeProblem& device, const DecodeTime& of,
                    const DecodeTime& all);

}  // namespace orrery
