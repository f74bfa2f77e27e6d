// SPDX-License-Identifier: Apache-2.0
#include "workloads/layers/attention/context_parallel.h"

#include <fmt/core.h>

#include <algorithm>
#include <string>
#include <utility>

#include "workloads/base/real.h"
#include "workloads/base/require.h"
#include "workloads/layers/parts/attention_kernels.h"
#include "workloads/layers/parts/mixer.h"
#include "workloads/ops/kernels.h"

namespace orrery {
namespace {

/// Bytes of the logarithm of a sum of exponentials, one a token and head.
constexpr double kSumBytes = 4;
/// Scaling an element by the share of its rank.
constexpr double kCorrection = 1;
/// Two outputs scaled and added.
constexpr double kMerge = 3;

std::int64_t ceil_div(std::int64_t count, std::int64_t by) { return (count + by - 1) / by; }

LayerCollective exchange(std::string name, TransferKind kind, Scope scope, double bytes) {
  return {std::move(name), kind, scope, Bytes(bytes)};
}

/// Outputs of `heads` heads over a part of the cache.
struct Partial {
  std::int64_t tokens = 0, heads = 0, columns = 0;

  double elements() const { return real(tokens * heads) * real(columns); }
};

/// The sums of all ranks come together, and each scales its outputs to its share of them.
void correct(StepList& steps, const LayerTask& task, const Partial& partial, Scope scope,
             int ranks) {
  const double bytes = task.bytes();
  steps.then(exchange("attention sums all-gather", TransferKind::kAllGather, scope,
                      kSumBytes * ranks * real(partial.tokens * partial.heads)));
  steps.then(elementwise("attention correction", partial.tokens, partial.heads * partial.columns,
                         {bytes, bytes, kCorrection}));
}

void decode_forward(StepList& steps, const LayerTask& task, const AttentionPart& part) {
  const CoreShape shape = core_shape(task);
  const std::int64_t tokens = part.sequences * part.query;
  gather_queries(steps, task, tokens, shape.qk_dim);
  AttentionCore core = attention_core(task, cached_part(part, task.work));
  core.heads *= task.work.split.dcp;
  steps.then(flash_attention("attention", core));
  combine_heads(steps, task, tokens, shape.v_dim);
  combine_contexts(steps, task, tokens, shape.v_dim);
}

/// Earlier tokens that lie on dcp ranks: queries of all heads see a rank's part of them, and what
/// comes of it is put together with what new tokens see of each other (vLLM,
/// v1/attention/backends/flash_attn.py, _forward_with_dcp).
void over_cache(StepList& steps, const LayerTask& task, const AttentionPart& part) {
  const RankWork& w = task.work;
  const CoreShape shape = core_shape(task);
  const double bytes = activation_bytes(w.formats.precision);
  AttentionPart seen = part;
  seen.prompts.clear();
  seen.query = context_share(part.query, w.split.cp);
  seen.context = cached_keys(part.context - part.query, w.split.dcp);
  const std::int64_t tokens = seen.sequences * seen.query;
  gather_queries(steps, task, tokens, shape.qk_dim);
  AttentionCore core = attention_core(task, seen);
  core.causal = false;
  core.heads *= w.split.dcp;
  steps.then(flash_attention("attention over the cache", core));
  combine_heads(steps, task, tokens, shape.v_dim);
  steps.then(elementwise("attention merge", tokens, shape.query_heads * shape.v_dim,
                         {2 * bytes, bytes, kMerge}));
}

void prefill_forward(StepList& steps, const LayerTask& task, const AttentionPart& part) {
  const RankWork& w = task.work;
  const CoreShape shape = core_shape(task);
  const std::int64_t earlier = part.context - part.query;
  gather_keys(steps, task, part, shape.kv_heads * (shape.qk_dim + shape.v_dim),
              cached_keys(earlier, w.split.dcp));
  AttentionPart own = own_part(part, w);
  const bool apart = w.split.dcp > 1 && earlier > 0;
  if (apart) {
    own.context -= earlier;
    own.prompts.clear();
  }
  attention_core_forward(steps, task, own);
  if (apart) over_cache(steps, task, part);
}

}  // namespace

std::int64_t context_piece(std::int64_t tokens, int cp) {
  return ceil_div(tokens, std::int64_t{2} * cp);
}

std::int64_t context_share(std::int64_t tokens, int cp) {
  return cp == 1 ? tokens : 2 * context_piece(tokens, cp);
}

std::int64_t rank_tokens(const std::vector<AttentionPart>& parts, int cp) {
  std::int64_t tokens = 0;
  for (const AttentionPart& part : parts)
    tokens += part.sequences *
              (part.phase == Phase::kDecode ? part.query : context_share(part.query, cp));
  return tokens;
}

std::int64_t cached_keys(std::int64_t keys, int ranks) { return ceil_div(keys, ranks); }

AttentionPart cached_part(const AttentionPart& part, const RankWork& work) {
  const int ranks = work.split.cp * work.split.dcp;
  AttentionPart cached = part;
  cached.context = cached_keys(part.context, ranks);
  for (std::int64_t& context : cached.contexts) context = cached_keys(context, ranks);
  if (!cached.contexts.empty()) cached.context = mean_length(cached.contexts);
  return cached;
}

AttentionPart own_part(const AttentionPart& part, const RankWork& work) {
  if (work.split.cp == 1) return part;
  AttentionPart own = part;
  own.prompts.clear();
  own.sequences = 2 * part.sequences;
  own.query = context_piece(part.query, work.split.cp);
  own.context = part.context - part.query + ceil_div((2 * work.split.cp + 1) * own.query, 2);
  return own;
}

std::int64_t gathered_keys(const AttentionPart& part, const RankWork& work) {
  const std::int64_t padded = work.split.cp * context_share(part.query, work.split.cp);
  return part.sequences * (part.context - part.query + padded);
}

void gather_keys(StepList& steps, const LayerTask& task, const AttentionPart& part,
                 std::int64_t columns, std::int64_t earlier) {
  const RankWork& w = task.work;
  if (w.split.cp == 1) return;
  const double padded = real(w.split.cp * context_share(part.query, w.split.cp));
  const double of_column = padded * activation_bytes(w.formats.precision) +
                           real(earlier) * element_bytes(w.formats.kv_precision);
  steps.then(exchange("keys and values all-gather", TransferKind::kAllGather, Scope::kContext,
                      real(part.sequences * columns) * of_column));
}

void gather_queries(StepList& steps, const LayerTask& task, std::int64_t tokens,
                    std::int64_t columns) {
  const RankWork& w = task.work;
  if (w.split.dcp == 1) return;
  const Partial queries{tokens, core_shape(task).query_heads * w.split.dcp, columns};
  steps.then(exchange("query all-gather", TransferKind::kAllGather, Scope::kDecodeContext,
                      queries.elements() * activation_bytes(w.formats.precision)));
}

void combine_heads(StepList& steps, const LayerTask& task, std::int64_t tokens,
                   std::int64_t columns) {
  const RankWork& w = task.work;
  if (w.split.dcp == 1) return;
  const Partial partial{tokens, core_shape(task).query_heads * w.split.dcp, columns};
  correct(steps, task, partial, Scope::kDecodeContext, w.split.dcp);
  steps.then(exchange("attention heads reduce-scatter", TransferKind::kReduceScatter,
                      Scope::kDecodeContext,
                      partial.elements() * activation_bytes(w.formats.precision)));
}

void combine_contexts(StepList& steps, const LayerTask& task, std::int64_t tokens,
                      std::int64_t columns) {
  const RankWork& w = task.work;
  if (w.split.cp == 1) return;
  const Partial partial{tokens, core_shape(task).query_heads, columns};
  correct(steps, task, partial, Scope::kContext, w.split.cp);
  steps.then(exchange("attention contexts all-reduce", TransferKind::kAllReduce, Scope::kContext,
                      partial.elements() * activation_bytes(w.formats.precision)));
}

void context_core_forward(StepList& steps, const LayerTask& task, const AttentionPart& part) {
  if (task.work.split.cp * task.work.split.dcp == 1) {
    attention_core_forward(steps, task, part);
  } else if (part.phase == Phase::kDecode) {
    decode_forward(steps, task, part);
  } else {
    prefill_forward(steps, task, part);
  }
}

StepList hidden_gather(const LlmConfig& model, const RankWork& work) {
  StepList steps;
  if (work.split.cp == 1 || work.batch.phase == Phase::kDecode) return steps;
  steps.then(exchange("hidden states all-gather", TransferKind::kAllGather, Scope::kContext,
                      real(work.split.cp * work.row_tokens()) * real(model.hidden) *
                          activation_bytes(work.formats.precision)));
  return steps;
}

void require_context_parallel(const LlmConfig& model, const ParallelConfig& parallel) {
  if (parallel.cache_shards() == 1) return;
  const char* key = parallel.cp > 1 ? "parallel.cp" : "parallel.dcp";
  const std::string other = unlike_attention(model);
  require(other.empty(), {key, "parallel"},
          "context parallelism of " + other + " is not modelled: model '" + model.name + "' has it",
          {"1", {}});
  const bool windows = std::ranges::any_of(
      model.layers, [](const LayerConfig& layer) { return layer.most_kept() > 0; });
  require(!windows, {key, "parallel"},
          "context parallelism of sliding windows and chunks is not modelled: model '" +
              model.name + "' has them",
          {"1", {}});
  if (parallel.dcp == 1) return;
  const bool latent = model.attention.kind == AttentionKind::kLatent;
  const std::int64_t heads = latent ? 1 : model.attention.kv_heads;
  const std::int64_t copies = std::max<std::int64_t>(1, parallel.tp / heads);
  require(copies % parallel.dcp == 0, {"parallel.dcp", "parallel"},
          fmt::format(
              "tp = {} ranks hold {}{} of each of {} KV heads, which dcp = {} ranks cannot share",
              parallel.tp, copies, copies == 1 ? " copy" : " copies", heads, parallel.dcp),
          {std::to_string(copies), {"dcp must divide the copies"}});
}

}  // namespace orrery
