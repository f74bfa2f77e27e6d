// SPDX-License-Identifier: Apache-2.0
#include "workloads/layers/parts/attention_kernels.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "workloads/base/real.h"
#include "workloads/layers/parts/rank_work.h"
#include "workloads/ops/kernels.h"

namespace orrery {
namespace {

double all_heads(const AttentionCore& core) { return real(core.sequences) * real(core.heads); }

/// Bytes of a column of the last `keys` keys (or values), over sequences and heads.
double column_bytes(const AttentionCore& core, std::int64_t keys) {
  const auto earlier = std::max<std::int64_t>(0, keys - core.query);
  const double of_head = real(keys - earlier) * core.new_bytes + real(earlier) * core.cache_bytes;
  return real(core.sequences) * (core.latent ? 1 : real(core.kv_heads)) * of_head;
}

Bytes key_bytes(const AttentionCore& core, std::int64_t keys) {
  return Bytes(real(core.qk_dim) * column_bytes(core, keys));
}

/// Those of a latent are the keys.
Bytes value_bytes(const AttentionCore& core, std::int64_t keys) {
  return core.latent ? Bytes() : Bytes(real(core.v_dim) * column_bytes(core, keys));
}

/// Query-key pairs of a head and sequence without a causal mask. A window has as many keys in front
/// of a token as behind it, fewer at the ends of a sequence.
double unmasked_pairs(const AttentionCore& core) {
  if (core.window == 0) return real(core.query) * real(core.context);
  const double behind = causal_pairs(core.query, core.context, core.window / 2 + 1);
  return 2 * behind - real(core.query);
}

AttentionShape shape_of(const AttentionCore& core) {
  return {core.sequences, core.kv_heads, core.window, core.wide_queries, core.contexts};
}

/// All of `sequences` have `context` keys.
CoreSize size_of_equals(const AttentionCore& core) {
  // A window lets the first new token see window keys and every later one a key more.
  const std::int64_t keys =
      core.window > 0 ? std::min(core.context, core.window + core.query - 1) : core.context;
  const double rows = all_heads(core) * real(core.query);
  const double bytes = activation_bytes(core.precision);
  CoreSize size;
  size.query = Bytes(rows * real(core.qk_dim) * bytes);
  size.keys = key_bytes(core, keys);
  size.values = value_bytes(core, keys);
  size.output = Bytes(rows * real(core.v_dim) * bytes);
  size.pairs = all_heads(core) * (core.causal ? causal_pairs(core.query, core.context, core.window)
                                              : unmasked_pairs(core));
  return size;
}

}  // namespace

void queries_as_heads(AttentionCore& core) {
  core.heads *= core.query;
  core.query = 1;
}

std::int64_t mean_length(const std::vector<std::int64_t>& lengths) {
  double sum = 0;
  for (const std::int64_t length : lengths) sum += real(length);
  return lengths.empty()
             ? 1
             : std::max<std::int64_t>(1, std::llround(sum / static_cast<double>(lengths.size())));
}

CoreSize core_size(const AttentionCore& core) {
  if (core.contexts.empty() && core.prompts.empty()) return size_of_equals(core);
  CoreSize all;
  AttentionCore one = core;
  const auto add = [&] {
    const CoreSize size = size_of_equals(one);
    all.query += size.query;
    all.keys += size.keys;
    all.values += size.values;
    all.output += size.output;
    all.pairs += size.pairs;
  };
  one.sequences = 1;
  for (const std::int64_t context : core.contexts) {
    one.context = context;
    add();
  }
  for (const Prompts& prompts : core.prompts) {
    one.sequences = prompts.sequences;
    one.query = prompts.query;
    one.context = prompts.context;
    add();
  }
  return all;
}

Bytes bias_bytes(const AttentionCore& core) {
  if (!core.biased) return {};
  return Bytes(core_size(core).pairs / real(core.sequences) * activation_bytes(core.precision));
}

void add_sinks(Kernel& kernel, const AttentionCore& core) {
  if (!core.sinks) return;
  const double rows = all_heads(core) * real(core.query);
  const Bytes logits(real(core.heads) * sizeof(float));
  kernel.exponentials += Flops(rows);
  kernel.vector_flops += Flops(rows * vector_cost::kSoftmax);
  kernel.read += logits;
  if (!kernel.attention.backward) return;
  kernel.read += Bytes(rows * 2 * sizeof(float));
  kernel.written += logits;
}

void add_softmax_operators(Kernel& softmax, double scores, double kept) {
  // Megatron-LM megatron/model/fused_softmax.py, forward_torch_softmax: the cast to fp32 writes,
  // the mask, a byte, reads and writes, the softmax reads and writes and the cast back reads fp32.
  // Gradients take the same way back.
  constexpr double kWide = 4, kMask = 1;
  softmax.read += Bytes(scores * (3 * kWide + kMask + kept));
  softmax.written += Bytes(scores * 3 * kWide);
  softmax.launches = 4;
}

double softmax_share(const AttentionCore& core) {
  if (!core.skips_masked || !core.causal) return 1;
  return causal_pairs(core.query, core.context, 0) / (real(core.query) * real(core.context));
}

Kernel flash_attention(std::string name, const AttentionCore& core) {
  const CoreSize size = core_size(core);
  Kernel kernel =
      matrix_kernel(std::move(name), core.kind, core.precision,
                    {core.query, core.context, head_width(core.kind, core.qk_dim, core.v_dim),
                     core.sequences * core.heads});
  kernel.attention = shape_of(core);
  kernel.matrix_flops = Flops(2 * size.pairs * real(core.qk_dim + core.v_dim));
  kernel.vector_flops = Flops(size.pairs * vector_cost::kSoftmax);
  kernel.exponentials = Flops(size.pairs);
  kernel.read = size.query + size.keys + size.values + bias_bytes(core);
  kernel.written = size.output;
  return kernel;
}

Kernel flash_attention_gradient(std::string name, const AttentionCore& core) {
  const CoreSize size = core_size(core);
  Kernel kernel = flash_attention(std::move(name), core);
  kernel.attention.backward = true;
  kernel.matrix_flops = Flops(2 * size.pairs * real(3 * core.qk_dim + 2 * core.v_dim));
  kernel.vector_flops = Flops(2 * size.pairs * vector_cost::kSoftmax);
  kernel.read = size.query + size.keys + size.values + 2 * size.output + bias_bytes(core);
  kernel.written = size.query + size.keys + size.values + bias_bytes(core);
  return kernel;
}

KernelGraph stored_attention(const AttentionCore& core, bool dropout) {
  const CoreSize size = core_size(core);
  const std::int64_t batch = core.sequences * core.heads;
  const std::int64_t rows = batch * core.query;
  const double bytes = activation_bytes(core.precision);
  const Bytes square(real(rows) * real(core.context) * bytes);
  KernelGraph graph;
  graph.add(
      gemm("attention scores", core.precision, {core.query, core.context, core.qk_dim, batch}),
      {{"queries", size.query}, {"keys", key_bytes(core, core.context)}}, {{"scores", square}});
  const double share = softmax_share(core);
  Kernel softmax = stream("attention softmax", KernelClass::kSoftmax, rows, core.context,
                          {share * bytes, bytes, share * vector_cost::kSoftmax});
  softmax.exponentials = softmax.exponentials * share;
  graph.add(softmax, {{"scores", share * square}}, {{"probabilities", square}},
            MaskedScores{core.kind, shape_of(core), size.pairs, size.keys, size.values});
  std::string weights = "probabilities";
  if (dropout) {
    const Bytes mask(real(rows) * real(core.context));
    graph.add(elementwise("attention dropout", rows, core.context,
                          {bytes, bytes + 1, vector_cost::kDropout}),
              {{weights, square}}, {{"dropped", square}, {"mask", mask}});
    weights = "dropped";
  }
  graph.add(gemm("attention values", core.precision, {core.query, core.v_dim, core.context, batch}),
            {{weights, square}, {"values", value_bytes(core, core.context)}},
            {{"outputs", size.output}});
  return graph;
}

Precision attention_precision(KernelClass kind, Precision precision, bool narrow_cache) {
  return kind == KernelClass::kAttentionPrefill && narrow_cache ? Precision::kFp8 : precision;
}

}  // namespace orrery
