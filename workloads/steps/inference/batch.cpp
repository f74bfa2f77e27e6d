// SPDX-License-Identifier: Apache-2.0
#include "workloads/steps/inference/batch.h"

#include <algorithm>

#include "sim/config/schema.h"

namespace orrery {

using config::between;

const config::Schema<PrefillChunk>& PrefillChunk::schema() {
  static const auto schema =
      config::Schema<PrefillChunk>("chunk", "prompts, or pieces of prompts, of one kind")
          .required("tokens", &PrefillChunk::tokens, "new tokens of each sequence", between(1, 1e8))
          .optional("context", &PrefillChunk::context,
                    "earlier tokens of each sequence, in the cache before the step",
                    between(0, 1e8))
          .optional("count", &PrefillChunk::count, "sequences of this kind", between(1, 1e6))
          .optional("samples", &PrefillChunk::samples,
                    "whether the prompt ends with this piece, so that a next token is chosen");
  return schema;
}

const config::Schema<DecodeGroup>& DecodeGroup::schema() {
  static const auto schema =
      config::Schema<DecodeGroup>("decode", "sequences that get one more token each")
          .required("context", &DecodeGroup::context,
                    "tokens of each sequence in the cache before the step", between(0, 1e8))
          .optional("count", &DecodeGroup::count, "sequences of this context", between(1, 1e6));
  return schema;
}

const config::Schema<MixedBatch>& MixedBatch::schema() {
  static const auto schema =
      config::Schema<MixedBatch>("mixed", "pieces of prompts beside decodes in one step")
          .optional("chunks", &MixedBatch::chunks, "prompts, or pieces of prompts")
          .optional("decodes", &MixedBatch::decodes, "sequences that decode")
          .optional("queries", &MixedBatch::queries,
                    "new tokens of each sequence that decodes: the next one, and draft tokens that "
                    "are verified beside it",
                    between(1, 64));
  return schema;
}

std::int64_t MixedBatch::decoding() const {
  std::int64_t sequences = 0;
  for (const DecodeGroup& group : decodes) sequences += group.count;
  return sequences;
}

std::int64_t MixedBatch::tokens() const {
  std::int64_t tokens = decoding() * queries;
  for (const PrefillChunk& chunk : chunks) tokens += chunk.tokens * chunk.count;
  return tokens;
}

std::int64_t MixedBatch::longest() const {
  std::int64_t longest = 0;
  for (const PrefillChunk& chunk : chunks)
    longest = std::max(longest, chunk.context + chunk.tokens);
  for (const DecodeGroup& group : decodes) longest = std::max(longest, group.context + queries);
  return longest;
}

}  // namespace orrery
