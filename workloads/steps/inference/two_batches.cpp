// SPDX-License-Identifier: Apache-2.0
#include "workloads/steps/inference/two_batches.h"

#include <algorithm>
#include <utility>

#include "workloads/base/require.h"
#include "workloads/ops/kernels.h"

namespace orrery {
namespace {

constexpr std::int64_t kLeastDecodes = 32, kLeastTokens = 512;

void deal_decodes(const MixedBatch& batch, std::array<MixedBatch, 2>& both) {
  std::size_t next = 0;
  for (const DecodeGroup& group : batch.decodes) {
    const std::int64_t more = (group.count + 1) / 2, fewer = group.count / 2;
    both.at(next).decodes.push_back({group.context, more});
    if (fewer > 0) both.at(1 - next).decodes.push_back({group.context, fewer});
    if (more > fewer) next = 1 - next;
  }
}

/// The first `tokens` of a chunk, and the rest of it; either may be none.
std::pair<PrefillChunk, PrefillChunk> cut(const PrefillChunk& chunk, std::int64_t tokens) {
  PrefillChunk front = chunk, rest = chunk;
  front.tokens = tokens;
  front.samples = chunk.samples && tokens == chunk.tokens;
  rest.tokens = chunk.tokens - tokens;
  rest.context = chunk.context + tokens;
  return {front, rest};
}

void deal_chunks(const MixedBatch& batch, std::array<MixedBatch, 2>& both) {
  std::int64_t all = 0;
  for (const PrefillChunk& chunk : batch.chunks) all += chunk.tokens * chunk.count;
  std::int64_t left = (all + 1) / 2;  // tokens that the first batch has yet to get
  const auto add = [](MixedBatch& half, PrefillChunk chunk, std::int64_t count) {
    chunk.count = count;
    if (count > 0 && chunk.tokens > 0) half.chunks.push_back(chunk);
  };
  for (const PrefillChunk& chunk : batch.chunks) {
    const std::int64_t whole = std::min(chunk.count, left / chunk.tokens);
    add(both[0], chunk, whole);
    left -= whole * chunk.tokens;
    const std::int64_t rest = chunk.count - whole;
    const std::int64_t tokens = rest > 0 ? std::exchange(left, 0) : 0;
    if (tokens > 0) {
      const auto [front, back] = cut(chunk, tokens);
      add(both[0], front, 1);
      add(both[1], back, 1);
    }
    add(both[1], chunk, rest - (tokens > 0 ? 1 : 0));
  }
}

}  // namespace

bool runs_two_batches(const InferenceConfig& config, std::int64_t tokens, bool decodes_alone) {
  return config.two_batch_overlap && tokens >= (decodes_alone ? kLeastDecodes : kLeastTokens);
}

MixedBatch batch_of(const InferenceConfig& config) {
  if (config.phase == Phase::kMixed) return config.batch;
  if (config.phase == Phase::kDecode) return {{}, {{config.kv_length, config.micro_batch}}};
  return {{{config.sequence, config.kv_length, config.micro_batch, true}}, {}};
}

std::array<MixedBatch, 2> halves(const MixedBatch& batch) {
  std::array<MixedBatch, 2> both;
  for (MixedBatch& half : both) half.queries = batch.queries;
  deal_decodes(batch, both);
  deal_chunks(batch, both);
  return both;
}

InferenceConfig half_step(InferenceConfig config, const MixedBatch& half) {
  config.phase = Phase::kMixed;
  config.batch = half;
  config.layer_tokens = 0;
  return config;
}

Kernel merge_batches(const LlmConfig& model, const RankWork& work) {
  const double bytes = 2 * activation_bytes(work.formats.precision);
  return elementwise("merge batches", work.tokens(), model.hidden, {bytes, bytes, 0});
}

void require_two_batches(const LlmConfig& model, const InferenceConfig& config) {
  require(model.has_moe(), "two_batch_overlap", "model '" + model.name + "' has no experts");
  require(!model.has(MixerKind::kNone), "two_batch_overlap",
          "batches that take turns are known of layers with attention and experts: model '" +
              model.name + "' has layers of experts alone");
  require(!config.lora, "lora", "two_batch_overlap knows no adapters");
  const ParallelConfig& p = config.parallel;
  require(p.cp == 1, {"parallel.cp", "parallel"}, "two_batch_overlap knows no context parallelism",
          {"1", {}});
  require(p.ep > 1, {"parallel.ep", "parallel", "two_batch_overlap"},
          "two_batch_overlap needs experts that are spread over ranks (ep > 1): there is nothing "
          "to overlap");
  require(p.tp == 1 && p.etp == 1, {p.tp > 1 ? "parallel.tp" : "parallel.etp", "parallel"},
          "two_batch_overlap is known for data parallel attention and whole experts: tp: 1, etp: 1",
          {"1", {}});
}

}  // namespace orrery
