// SPDX-License-Identifier: Apache-2.0
#include "workloads/layers/attention/chunked_attention.h"

#include <algorithm>
#include <vector>

#include "workloads/base/real.h"
#include "workloads/layers/parts/attention_kernels.h"

namespace orrery {
namespace {

/// Tokens of the chunk in which the next one falls that are there before it.
std::int64_t filled(std::int64_t earlier, std::int64_t chunk, ChunkPhase phase) {
  if (phase == ChunkPhase::kMiddle && earlier >= chunk) return chunk / 2;
  return earlier % chunk;
}

/// Pieces of prompts: the rest of a chunk that was begun, whole chunks, and the start of another.
void add_pieces(const Prompts& prompts, std::int64_t chunk, ChunkPhase phase,
                std::vector<Prompts>& pieces) {
  const std::int64_t begun = filled(prompts.context - prompts.query, chunk, phase);
  const std::int64_t first = std::min(prompts.query, chunk - begun);
  const std::int64_t whole = (prompts.query - first) / chunk;
  const std::int64_t rest = prompts.query - first - whole * chunk;
  pieces.push_back({prompts.sequences, first, begun + first});
  if (whole > 0) pieces.push_back({prompts.sequences * whole, chunk, chunk});
  if (rest > 0) pieces.push_back({prompts.sequences, rest, rest});
}

AttentionPart prompts_in_chunks(const AttentionPart& part, std::int64_t chunk, ChunkPhase phase) {
  std::vector<Prompts> all = part.prompts;
  if (all.empty()) all.push_back({part.sequences, part.query, part.context});
  AttentionPart pieces = part;
  pieces.prompts.clear();
  PromptSum sum;
  for (const Prompts& prompts : all) add_pieces(prompts, chunk, phase, pieces.prompts);
  for (const Prompts& prompts : pieces.prompts) sum.add(prompts);
  const Prompts alike = sum.alike();
  pieces.sequences = alike.sequences;
  pieces.query = alike.query;
  pieces.context = alike.context;
  if (pieces.prompts.size() == 1) pieces.prompts.clear();
  return pieces;
}

}  // namespace

std::int64_t keys_in_chunk(std::int64_t context, std::int64_t chunk, ChunkPhase phase) {
  return filled(context - 1, chunk, phase) + 1;
}

AttentionPart in_chunks(const AttentionPart& part, std::int64_t chunk, ChunkPhase phase) {
  if (part.phase != Phase::kDecode) return prompts_in_chunks(part, chunk, phase);
  AttentionPart seen = part;
  // Draft tokens that are verified see at least each other.
  const auto own = [&](std::int64_t context) {
    return std::max(std::min(part.query, chunk), keys_in_chunk(context, chunk, phase));
  };
  seen.context = own(part.context);
  for (std::int64_t& context : seen.contexts) context = own(context);
  if (!seen.contexts.empty()) seen.context = mean_length(seen.contexts);
  return seen;
}

double mean_keys_in_chunks(std::int64_t tokens, std::int64_t chunk, bool causal) {
  const double whole = real(tokens / chunk), rest = real(tokens % chunk), size = real(chunk);
  const double squares = whole * size * size + rest * rest;
  return squares / real(tokens) / (causal ? 2 : 1);
}

}  // namespace orrery
