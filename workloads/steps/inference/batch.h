// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "sim/config/declared.h"

namespace orrery {

/// Prompts, or pieces of prompts, that enter the cache in a step.
struct PrefillChunk {
  std::int64_t tokens = 1;   ///< new tokens of each
  std::int64_t context = 0;  ///< earlier tokens of each, in the cache before the step
  std::int64_t count = 1;    ///< sequences of this kind
  bool samples = true;       ///< the piece is the last of its prompt: a next token is chosen
  static const config::Schema<PrefillChunk>& schema();
};

/// Sequences that get one more token each.
struct DecodeGroup {
  std::int64_t context = 0;  ///< tokens of each in the cache before the step
  std::int64_t count = 1;    ///< number of sequences
  static const config::Schema<DecodeGroup>& schema();
};

/// What a data parallel rank does in one step of chunked prefill: pieces of prompts beside the next
/// tokens of other sequences, as vLLM's scheduler of version 1 puts them together. All tokens
/// share projections, norms, MLPs, experts and collectives; attention has a kernel for all chunks
/// and one for all decodes.
struct MixedBatch {
  std::vector<PrefillChunk> chunks;
  std::vector<DecodeGroup> decodes;
  /// New tokens of each sequence that decodes: its next one, and draft tokens that are
  /// verified beside it.
  std::int64_t queries = 1;
  static const config::Schema<MixedBatch>& schema();

  bool empty() const { return chunks.empty() && decodes.empty(); }
  std::int64_t decoding() const;  ///< sequences that decode
  std::int64_t tokens() const;    ///< new ones, decodes included
  std::int64_t longest() const;   ///< most tokens of a sequence after the step
};

}  // namespace orrery
