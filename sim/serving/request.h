// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "sim/units/time.h"

namespace orrery {

/// What a prompt begins with, as hashes of pieces of equal length, each of the piece and of all
/// before it: prompts with equal leading hashes share those tokens.
struct PrefixHashes {
  std::int64_t tokens = 0;  ///< tokens of a piece
  std::vector<std::uint64_t> pieces;

  bool operator==(const PrefixHashes&) const = default;
};

/// A prompt that somebody sends, and how many tokens the answer will have.
struct Request {
  std::int64_t id = 0;  ///< number in order of arrival, from 0
  Picoseconds arrival = 0;
  std::int64_t prompt = 1;  ///< tokens of the prompt
  std::int64_t output = 1;  ///< tokens, the one that the prefill gives included
  std::shared_ptr<const PrefixHashes> prefix = nullptr;  ///< null: shares nothing
  std::int32_t priority = 0;  ///< the lower, the sooner, where engines look at it
  std::int32_t adapter = -1;  ///< number of its LoRA adapter; -1: none

  bool operator==(const Request&) const = default;
};

/// The time of what has not happened yet.
inline constexpr Picoseconds kNotYet = ~Picoseconds{0};

/// How far an instance is with a request. A request whose cache was dropped computes its prompt and
/// what it has produced again before its next token.
struct RequestState {
  Request request;
  std::int64_t cached = 0;        ///< tokens in the cache
  std::int64_t produced = 0;      ///< tokens of the answer
  std::int64_t blocks = 0;        ///< blocks of the cache that it alone holds
  std::int64_t states = 0;        ///< blocks of those that have its recurrent states
  std::int64_t windows = 0;       ///< blocks of those that have its sliding windows
  std::int64_t shared = 0;        ///< pieces of its prefix that it holds with others
  std::int64_t preemptions = 0;   ///< times that its cache was dropped
  std::int64_t found = 0;         ///< tokens of its prompt that were kept from others
  std::int64_t rest = 0;          ///< tokens of the answer that another instance will add
  std::int64_t moved = 0;         ///< tokens of the cache that came from another instance
  Picoseconds started = kNotYet;  ///< when it was taken into a batch first
  Picoseconds first_token = 0;
  Picoseconds last_token = 0;
  Picoseconds moved_at = kNotYet;  ///< when its cache came from another instance

  /// Tokens to compute before the next token of the answer.
  std::int64_t missing() const { return request.prompt + produced - cached; }
  /// Whether its next iteration adds one token to an answer that has begun.
  bool decodes() const { return produced > 0 && missing() == 1; }
  bool done() const { return produced >= request.output; }
};

}  // namespace orrery
