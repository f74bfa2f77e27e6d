// SPDX-License-Identifier: Apache-2.0
#include "workloads/layers/sparse/indexer_kernels.h"

#include <algorithm>
#include <cmath>

#include "workloads/base/real.h"
#include "workloads/layers/parts/attention_kernels.h"
#include "workloads/ops/kernels.h"

namespace orrery {
namespace {

constexpr double kScoreBytes = 4;   ///< scores, their weights and chosen places
constexpr double kScoreFlops = 3;   ///< ReLU, product with the weight of the head, sum
constexpr double kSelectFlops = 2;  ///< digit of a histogram; comparison
/// Rows of queries that choose the same block of keys (MiniMax-AI/MSA).
constexpr std::int64_t kGathered = 128;

std::int64_t each_of(double pairs, std::int64_t tokens) {
  return std::max<std::int64_t>(1, std::llround(pairs / real(tokens)));
}

/// Pairs of one head, and elements of one column of the keys.
AttentionCore one_column(const AttentionPart& part, std::int64_t window) {
  AttentionCore core;
  core.sequences = part.sequences;
  core.heads = core.kv_heads = 1;
  core.query = part.query;
  core.context = part.context;
  core.contexts = part.contexts;
  core.prompts = part.prompts;
  core.window = window;
  core.qk_dim = 1;
  core.new_bytes = core.cache_bytes = 1;
  return core;
}

/// Entries that the tokens of a step choose together, at least: a token of a sequence chooses what
/// the one before it has chosen but for one, and itself.
double chosen_entries(const SeenKeys& seen) {
  const double least = real(seen.sequences * seen.chosen_by_each() + seen.tokens);
  return std::min({seen.chosen, seen.entries, least});
}

}  // namespace

std::int64_t SeenKeys::seen_by_each() const { return each_of(pairs, tokens); }
std::int64_t SeenKeys::chosen_by_each() const { return each_of(chosen, tokens); }

SeenKeys seen_keys(const AttentionPart& part, std::int64_t ratio, std::int64_t most) {
  const CoreSize all = core_size(one_column(part, 0));
  SeenKeys seen;
  seen.sequences = part.sequences;
  seen.tokens = part.sequences * part.query;
  if (!part.prompts.empty()) {
    PromptSum sum;
    for (const Prompts& prompts : part.prompts) sum.add(prompts);
    seen.tokens = sum.tokens;
  }
  seen.pairs = all.pairs / real(ratio);
  seen.entries = all.keys.base() / real(ratio);
  seen.chosen =
      most > 0 ? core_size(one_column(part, most * ratio)).pairs / real(ratio) : seen.pairs;
  return seen;
}

Kernel index_scores(const SeenKeys& seen, const IndexerConfig& indexer, std::int64_t heads,
                    std::int64_t groups, Precision precision, double key_bytes) {
  const bool weighs = indexer.block == 1;  // blocks have their largest score, without weights
  const double bytes = element_bytes(precision);
  const bool alone = seen.paged || seen.tokens < kScoredTogether * seen.sequences;
  const std::int64_t blocks = alone ? seen.tokens : seen.sequences;
  const std::int64_t tokens = std::max<std::int64_t>(1, seen.tokens / blocks);
  Kernel kernel = matrix_kernel("index scores", KernelClass::kSparse, precision,
                                {tokens * heads, seen.seen_by_each(), indexer.head_dim, blocks});
  kernel.matrix_flops = Flops(2 * seen.pairs * real(heads * indexer.head_dim));
  kernel.vector_flops = Flops((weighs ? kScoreFlops : 1) * seen.pairs * real(heads));
  kernel.read = Bytes(real(seen.tokens * heads) *
                          (real(indexer.head_dim) * bytes + (weighs ? kScoreBytes : 0)) +
                      seen.entries * real(indexer.head_dim) * key_bytes);
  kernel.written = Bytes(seen.pairs / real(indexer.block) * real(groups) * kScoreBytes);
  return kernel;
}

Kernel index_selection(const SeenKeys& seen, const IndexerConfig& indexer, std::int64_t groups) {
  // Rows with no more scores than may be chosen are taken whole, unread (SGLang's topk.cu:
  // naive_topk_transform).
  const bool chooses = seen.pairs > seen.chosen;
  const double scores = chooses ? seen.pairs / real(indexer.block) * real(groups) : 0;
  Kernel kernel;
  kernel.name = "index selection";
  kernel.kind = KernelClass::kSparse;
  kernel.batch = seen.tokens * groups;
  kernel.m = 1;
  kernel.n = chooses ? (seen.seen_by_each() + indexer.block - 1) / indexer.block : 0;
  kernel.vector_flops = Flops(kSelectFlops * scores);
  kernel.read = Bytes(scores * kScoreBytes);
  kernel.written = Bytes(seen.chosen / real(indexer.block) * real(groups) * kScoreBytes);
  return kernel;
}

Kernel chosen_attention(const SeenKeys& seen, const ChosenHeads& heads, Precision precision) {
  const double width = activation_bytes(precision);
  const double rows = real(seen.tokens * heads.groups * heads.heads);
  const double columns = real(heads.qk_dim + (heads.latent ? 0 : heads.v_dim));
  const double pairs = seen.chosen * real(heads.groups * heads.heads);
  Kernel kernel =
      matrix_kernel("attention", KernelClass::kSparse, precision,
                    {heads.heads, seen.chosen_by_each(), heads.qk_dim, seen.tokens * heads.groups});
  kernel.attention.places = heads.places;
  kernel.attention.sequences = seen.sequences;
  kernel.attention.kv_heads = heads.groups;
  if (heads.gathers) {
    const std::int64_t queries = std::max<std::int64_t>(1, kGathered / heads.heads);
    kernel.batch = (kernel.batch + queries - 1) / queries;
    kernel.m = queries * heads.heads;
  }
  kernel.matrix_flops = Flops(2 * pairs * real(heads.qk_dim + heads.v_dim));
  kernel.vector_flops = Flops(pairs * vector_cost::kSoftmax);
  kernel.exponentials = Flops(pairs);
  kernel.read = Bytes(rows * real(heads.qk_dim) * width +
                      chosen_entries(seen) * real(heads.groups) * columns * heads.cache_bytes);
  kernel.written = Bytes(rows * real(heads.v_dim) * width);
  kernel.attention.wide_queries = heads.cache_bytes < width;
  return kernel;
}

}  // namespace orrery
