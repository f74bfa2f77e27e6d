// SPDX-License-Identifier: Apache-2.0
#include "workloads/inference/batch.h"

#include <algorithm>

namespace orrery {

std::int64_t MixedBatch::decoding() const {
  std::int64_t sequences = 0;
  for (const DecodeGroup& group : decodes) sequences += group.count;
  return sequences;
}

std::int64_t MixedBatch::tokens() const {
  std::int64_t tokens = decoding();
  for (const PrefillChunk& chunk : chunks) tokens += chunk.tokens * chunk.count;
  return tokens;
}

std::int64_t MixedBatch::longest() const {
  std::int64_t longest = 0;
  for (const PrefillChunk& chunk : chunks)
    longest = std::max(longest, chunk.context + chunk.tokens);
  for (const DecodeGroup& group : decodes) longest = std::max(longest, group.context + 1);
  return longest;
}

}  // namespace orrery
