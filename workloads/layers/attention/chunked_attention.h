// SPDX-License-Identifier: Apache-2.0
// Chunked attention (Llama 4): a token sees those of its own chunk of the sequence, up to itself.
#pragma once

#include <cstdint>

#include "workloads/layers/parts/rank_work.h"

namespace orrery {

/// Where in its chunk a sequence stands that is longer than one.
enum class ChunkPhase : std::uint8_t {
  kExact,   ///< where its length says
  kMiddle,  ///< middle of it, for sequences of which only the mean length is known
};

/// Keys that the last of `context` tokens sees.
std::int64_t keys_in_chunk(std::int64_t context, std::int64_t chunk,
                           ChunkPhase phase = ChunkPhase::kExact);

/// The same work as sequences of their own for the pieces of each chunk, which is how engines run
/// it (vLLM, v1/attention/backends/utils.py, make_local_attention_virtual_batches).
AttentionPart in_chunks(const AttentionPart& part, std::int64_t chunk,
                        ChunkPhase phase = ChunkPhase::kExact);

/// Keys that the average of `tokens` tokens of a sequence sees, up to half a key; `causal` false:
/// all of its chunk.
double mean_keys_in_chunks(std::int64_t tokens, std::int64_t chunk, bool causal);

}  // namespace orrery
