// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>

#include "sim/units/time.h"

namespace orrery {

/// A prompt, or a piece of one, that enters the cache in an iteration.
struct Chunk {
  std::int64_t tokens = 1;   ///< new ones
  std::int64_t context = 0;  ///< earlier tokens of the sequence, in the cache before
  bool samples = true;       ///< the last piece of its prompt: a next token is chosen

  bool operator==(const Chunk&) const = default;
};

/// Work of one instance in an iteration of continuous batching, for each data parallel rank: chunks
/// of prompts, and sequences that decode. The time of decode attention depends on the number of
/// these sequences, on their tokens in the cache, and on the longest sequence, for which the others
/// wait. With draft tokens, each sequence also verifies its draft tokens.
struct BatchShape {
  std::int64_t sequences = 0;  ///< sequences that decode
  std::int64_t longest = 0;    ///< tokens in the cache of the longest of these, before
  std::int64_t context = 0;    ///< tokens in the cache of all of these together, before
  std::span<const Chunk> chunks{};
  std::int64_t queries = 1;   ///< new tokens of each of the sequences
  std::int64_t padding = 0;   ///< tokens that layers compute beside all these, for nothing
  std::int64_t adapters = 0;  ///< different LoRA adapters among the tokens; 0: none has one
  /// Tokens of a data parallel rank, padding included, in the mean over all: experts that ranks
  /// share work on those of all ranks, whichever they come from. 0: all have as many as this one.
  std::int64_t mean_tokens = 0;

  /// New tokens of the iteration.
  std::int64_t tokens() const {
    std::int64_t all = sequences * queries;
    for (const Chunk& chunk : chunks) all += chunk.tokens;
    return all;
  }
};

/// What an iteration takes of a data parallel rank.
struct IterationPrice {
  Picoseconds time = 0;  ///< time of its devices
  double energy = 0;     ///< joules of all its devices above idle
  double kernels = 0;    ///< kernels that a device's host launches
};

/// The door through which schedulers see time.
class IterationPricer {
 public:
  IterationPricer() = default;
  IterationPricer(const IterationPricer&) = delete;
  IterationPricer& operator=(const IterationPricer&) = delete;
  virtual ~IterationPricer() = default;

  /// A function of the shape alone, whatever was asked before. An empty batch takes nothing.
  virtual IterationPrice price(const BatchShape& shape) = 0;
  Picoseconds time(const BatchShape& shape) { return price(shape).time; }
};

}  // namespace orrery
