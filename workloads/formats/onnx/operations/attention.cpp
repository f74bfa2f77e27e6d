// SPDX-License-Identifier: Apache-2.0
// Attention as one operator: ONNX's own and those of ONNX Runtime
// (https://github.com/microsoft/onnxruntime/blob/main/docs/ContribOperators.md), and rotary
// embeddings.
#include <fmt/core.h>

#include <algorithm>
#include <string>
#include <utility>

#include "workloads/base/real.h"
#include "workloads/formats/onnx/operations/products.h"
#include "workloads/layers/parts/attention_kernels.h"
#include "workloads/ops/kernels.h"

namespace orrery::onnx {
namespace {

AttentionCore core_of(std::int64_t sequences, std::int64_t query, std::int64_t context,
                      std::int64_t heads, std::int64_t kv_heads) {
  AttentionCore h;
  h.sequences = sequences;
  h.query = query;
  h.context = context;
  h.heads = heads;
  h.kv_heads = kv_heads;
  return h;
}

std::int64_t width_of(const Operation& op, std::int64_t columns, std::int64_t heads) {
  if (heads < 1 || columns % heads != 0)
    op.refuse(fmt::format("{} heads of {} columns", heads, columns));
  return columns / heads;
}

/// One kernel that keeps the scores on the chip; a cache is read with the keys and values.
Lowered& attention_kernel(Operation& op, AttentionCore h) {
  if (h.kv_heads < 1 || h.heads % h.kv_heads != 0 || h.query < 1 || h.context < 1 || h.qk_dim < 1)
    op.refuse(fmt::format("{} heads of queries, {} of keys, {} queries, {} keys", h.heads,
                          h.kv_heads, h.query, h.context));
  h.kind = h.query == 1 ? KernelClass::kAttentionDecode : KernelClass::kAttentionPrefill;
  h.precision = op.precision(op.in(0).type);
  h.causal = h.causal && h.query <= h.context;
  Lowered& lowered = op.kernel(h.kind);
  lowered.kernel = flash_attention("attention", h);
  return lowered;
}

/// Sizes from queries, keys and values of three or four dimensions.
AttentionCore heads_of(const Operation& op, std::int64_t heads, std::int64_t kv_heads) {
  const Dims &q = op.in(0).dims, &k = op.in(1).dims, &v = op.in(2).dims;
  AttentionCore h;
  if (q.size() == 4 && k.size() == 4 && v.size() == 4) {
    h = core_of(q[0], q[2], k[2], q[1], k[1]);
    h.qk_dim = q[3];
    h.v_dim = v[3];
  } else if (q.size() == 3 && k.size() == 3 && v.size() == 3) {
    h = core_of(q[0], q[1], k[1], heads, kv_heads);
    h.qk_dim = width_of(op, q[2], heads);
    h.v_dim = width_of(op, v[2], kv_heads);
  } else {
    op.refuse(fmt::format("queries, keys and values are {}, {} and {}", text_of(q), text_of(k),
                          text_of(v)));
  }
  return h;
}

/// Q, K, V, mask, past keys, past values.
void attention(Operation& op) {
  const std::int64_t heads = op.integer("q_num_heads", 1);
  AttentionCore h = heads_of(op, heads, op.integer("kv_num_heads", heads));
  h.causal = op.integer("is_causal") != 0;
  if (op.has(4) && op.in(4).dims.size() == 4) h.context += op.in(4).dims[2];
  Dims dims = op.in(0).dims;
  dims.back() = dims.size() == 4 ? h.v_dim : h.v_dim * h.heads;
  const DataType type = op.in(0).type;
  op.result(0, dims, type);
  op.result(1, {h.sequences, h.kv_heads, h.context, h.qk_dim}, type);
  op.result(2, {h.sequences, h.kv_heads, h.context, h.v_dim}, type);
  if (op.node().outputs.size() > 3) op.result(3, {h.sequences, h.heads, h.query, h.context}, type);
  attention_kernel(op, h);
}

/// Results of a cache that is written where it stands: the new tokens alone.
void present(Operation& op, std::size_t first, const AttentionCore& h) {
  const DataType type = op.in(0).type;
  op.result(first, {h.sequences, h.kv_heads, h.context, h.qk_dim}, type);
  op.result(first + 1, {h.sequences, h.kv_heads, h.context, h.v_dim}, type);
}
void write_new_tokens(Operation& op, Lowered& lowered, std::size_t first, const AttentionCore& h) {
  const double part = real(std::min(h.query, h.context)) / real(h.context);
  lowered.writes = {op.use_of_result(0)};
  for (std::size_t i = first; i < first + 2; ++i) {
    const ValueUse whole = op.use_of_result(i);
    lowered.writes.push_back({whole.value, whole.bytes * part});
  }
}

/// com.microsoft: input, weights of queries, keys and values side by side, their bias, mask, past.
void packed_attention(Operation& op) {
  const Dims input = op.in(0).dims, weight = op.in(1).dims;
  if (input.size() != 3 || weight.size() != 2) op.refuse("its input is " + text_of(input));
  const std::int64_t heads = op.integer("num_heads", 1);
  Dims parts = op.integers("qkv_hidden_sizes");
  if (parts.size() != 3) parts.assign(3, weight[1] / 3);
  AttentionCore h = core_of(input[0], input[1], input[1], heads, heads);
  h.qk_dim = width_of(op, parts[0], heads);
  h.v_dim = width_of(op, parts[2], heads);
  h.causal = op.integer("unidirectional") != 0;
  if (op.has(4) && op.in(4).dims.size() == 5) h.context += op.in(4).dims[3];
  const DataType type = op.in(0).type;
  op.result(0, {input[0], input[1], parts[2]}, type);
  std::size_t made = op.node().outputs.size();
  if (made > 1) op.result(1, {2, h.sequences, h.heads, h.context, h.qk_dim}, type);
  made = std::max<std::size_t>(made, 1);
  op.result(made, {input[0], input[1], weight[1]}, type);  // queries, keys and values
  Lowered& product = multiply_kernel(op, {1, input[0] * input[1], weight[1], weight[0]}, 0, 1);
  product.reads.resize(2);
  if (op.has(2)) product.reads.push_back(op.use(2));
  product.writes = {op.use_of_result(made)};
  Lowered& core = attention_kernel(op, h);
  core.reads = {op.use_of_result(made)};
  for (std::size_t i = 3; i < op.inputs(); ++i)
    if (op.has(i)) core.reads.push_back(op.use(i));
  core.writes = {op.use_of_result(0)};
  if (op.node().outputs.size() > 1) core.writes.push_back(op.use_of_result(1));
}

/// com.microsoft: query, key, value, bias, mask, bias of scores, past keys, past values. The query
/// may have all three packed: batch x length x heads x 3 x width.
void multi_head_attention(Operation& op) {
  const std::int64_t heads = op.integer("num_heads", 1);
  AttentionCore h;
  const Dims q = op.in(0).dims;
  if (!op.has(1)) {
    if (q.size() != 5) op.refuse("its packed query is " + text_of(q));
    h = core_of(q[0], q[1], q[1], q[2], q[2]);
    h.qk_dim = h.v_dim = q[4];
  } else if (op.in(1).dims.size() == 4 && q.size() == 3) {  // keys of another sequence
    const Dims &k = op.in(1).dims, &v = op.in(2).dims;
    if (v.size() != 4) op.refuse("its values are " + text_of(v));
    h = core_of(q[0], q[1], k[2], heads, heads);
    h.qk_dim = width_of(op, q[2], heads);
    h.v_dim = v[3];
  } else {
    h = heads_of(op, heads, heads);
  }
  h.causal = op.integer("unidirectional") != 0;
  if (op.has(6) && op.in(6).dims.size() == 4) h.context += op.in(6).dims[2];
  op.result(0, {h.sequences, h.query, h.heads * h.v_dim}, op.in(0).type);
  const bool cached = op.node().outputs.size() > 1;
  if (cached) present(op, 1, h);
  Lowered& lowered = attention_kernel(op, h);
  if (cached) write_new_tokens(op, lowered, 1, h);
}

/// com.microsoft: query (or all packed), key, value, past keys, past values, lengths, total length,
/// cosines, sines.
void group_query_attention(Operation& op) {
  const std::int64_t heads = op.integer("num_heads", 1), kv = op.integer("kv_num_heads", heads);
  const Dims q = op.in(0).dims;
  if (q.size() != 3) op.refuse("its query is " + text_of(q));
  AttentionCore h = core_of(q[0], q[1], q[1], heads, kv);
  if (heads < 1 || kv < 1 || heads > kMostElements / 4 || kv > kMostElements / 4)
    op.refuse("it has no heads");
  h.qk_dim = h.v_dim = op.has(1) ? width_of(op, q[2], heads) : width_of(op, q[2], heads + 2 * kv);
  h.causal = true;
  h.window = std::max<std::int64_t>(0, op.integer("local_window_size", -1));
  if (op.has(3) && op.in(3).dims.size() == 4) h.context += op.in(3).dims[2];
  op.result(0, {h.sequences, h.query, h.heads * h.qk_dim}, op.in(0).type);
  present(op, 1, h);
  Lowered& lowered = attention_kernel(op, h);
  if (op.integer("do_rotary") != 0)
    lowered.kernel.vector_flops +=
        Flops(vector_cost::kRotary * real(h.sequences * h.query) * real((heads + kv) * h.qk_dim));
  write_new_tokens(op, lowered, 1, h);
}

/// Positions turn pairs of columns.
const Rule kRotation = as_input(KernelClass::kElementwise, Fusing::kElements, vector_cost::kRotary);

const RegisterRules kAttention("attention",
                               {
                                   {attention, {"Attention"}},
                                   {kRotation,
                                    {"RotaryEmbedding", "com.microsoft:RotaryEmbedding"}},
                                   {packed_attention, {"com.microsoft:Attention"}},
                                   {multi_head_attention, {"com.microsoft:MultiHeadAttention"}},
                                   {group_query_attention, {"com.microsoft:GroupQueryAttention"}},
                               });

}  // namespace
}  // namespace orrery::onnx
