// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "workloads/llm/kernels.h"
#include "workloads/llm/layer_parts.h"
#include "workloads/llm/real.h"

namespace orrery {
namespace {

/// Matrices of the core of one rank, in bytes, and its query-key pairs over all heads.
struct CoreSize {
  double query = 0, keys_values = 0, output = 0, pairs = 0;
};

CoreSize core_size(const LayerTask& task) {
  const LayerWork& w = task.work;
  const CoreShape shape = core_shape(task);
  const double bytes = activation_bytes(w.precision);
  // A window lets the first new token see window keys and every later one a key more.
  const std::int64_t window = task.layer.window;
  const std::int64_t keys = window > 0 ? std::min(w.context, window + w.query - 1) : w.context;
  const double per_key = real(w.sequences * shape.kv_heads * (shape.qk_dim + shape.v_dim));
  const double earlier = real(std::max<std::int64_t>(0, keys - w.query));
  // Latent attention expands earlier keys and values from the cache before a prefill: they are
  // activations again.
  const bool cached = task.model.attention.kind == AttentionKind::kGrouped;
  const double cache_bytes = cached ? element_bytes(w.kv_precision) : bytes;
  CoreSize size;
  size.query = real(w.tokens() * shape.query_heads * shape.qk_dim) * bytes;
  size.keys_values = per_key * ((real(keys) - earlier) * bytes + earlier * cache_bytes);
  size.output = real(w.tokens() * shape.query_heads * shape.v_dim) * bytes;
  size.pairs = real(w.sequences * shape.query_heads) * causal_pairs(w.query, w.context, window);
  return size;
}

/// Latent attention gets here with its keys and values expanded, whatever the phase.
KernelClass kind_of(const LayerTask& task) {
  if (task.model.attention.kind == AttentionKind::kLatent) return KernelClass::kMlaPrefill;
  return task.work.phase == Phase::kDecode ? KernelClass::kAttentionDecode
                                           : KernelClass::kAttentionPrefill;
}

Kernel flash_kernel(const std::string& name, const LayerTask& task) {
  const LayerWork& w = task.work;
  const CoreShape shape = core_shape(task);
  Kernel kernel;
  kernel.name = name;
  kernel.kind = kind_of(task);
  kernel.precision = unquantised(w.precision);
  kernel.batch = w.sequences * shape.query_heads;
  kernel.m = w.query;
  kernel.n = w.context;
  kernel.k = shape.qk_dim;
  kernel.attention = {w.sequences, shape.kv_heads, task.layer.window};
  return kernel;
}

void flash_forward(StepList& steps, const LayerTask& task) {
  const CoreShape shape = core_shape(task);
  const CoreSize size = core_size(task);
  Kernel kernel = flash_kernel("attention", task);
  kernel.matrix_flops = Flops(2 * size.pairs * real(shape.qk_dim + shape.v_dim));
  kernel.vector_flops = Flops(size.pairs * vector_cost::kSoftmax);
  kernel.read = Bytes(size.query + size.keys_values);
  kernel.written = Bytes(size.output);
  steps.then(kernel);
}

/// Five products against two: scores again, then the gradients of softmax, values, queries and
/// keys.
void flash_backward(StepList& steps, const LayerTask& task) {
  const CoreShape shape = core_shape(task);
  const CoreSize size = core_size(task);
  Kernel kernel = flash_kernel("attention backward", task);
  kernel.matrix_flops = Flops(2 * size.pairs * real(3 * shape.qk_dim + 2 * shape.v_dim));
  kernel.vector_flops = Flops(2 * size.pairs * vector_cost::kSoftmax);
  kernel.read = Bytes(size.query + size.keys_values + 2 * size.output);
  kernel.written = Bytes(size.query + size.keys_values);
  steps.then(kernel);
}

/// The square of scores of all heads of a rank: [rows, context].
struct Square {
  std::int64_t heads = 0, query = 0, context = 0;
  std::int64_t rows() const { return heads * query; }
};

Square square_of(const LayerTask& task) {
  return {task.work.sequences * core_shape(task).query_heads, task.work.query, task.work.context};
}

void stored_forward(StepList& steps, const LayerTask& task) {
  const Square s = square_of(task);
  const CoreShape shape = core_shape(task);
  const Precision precision = unquantised(task.work.precision);
  const double bytes = activation_bytes(precision);
  steps.then(gemm("attention scores", precision, {s.query, s.context, shape.qk_dim, s.heads}));
  steps.then(stream("attention softmax", KernelClass::kSoftmax, s.rows(), s.context,
                    {bytes, bytes, vector_cost::kSoftmax}));
  if (task.work.dropout) {
    steps.then(stream("attention dropout", KernelClass::kElementwise, s.rows(), s.context,
                      {bytes, bytes + 1, vector_cost::kDropout}));
  }
  steps.then(gemm("attention values", precision, {s.query, shape.v_dim, s.context, s.heads}));
}

void stored_backward(StepList& steps, const LayerTask& task) {
  const Square s = square_of(task);
  const CoreShape shape = core_shape(task);
  const Precision precision = unquantised(task.work.precision);
  const double bytes = activation_bytes(precision);
  const std::size_t gradient = steps.cursor();
  steps.then(
      gemm("attention softmax gradient", precision, {s.query, s.context, shape.v_dim, s.heads}));
  steps.aside(
      gemm("attention value gradient", precision, {s.context, shape.v_dim, s.query, s.heads}),
      {gradient});
  if (task.work.dropout) {
    steps.then(stream("attention dropout backward", KernelClass::kElementwise, s.rows(), s.context,
                      {bytes + 1, bytes, 1}));
  }
  steps.then(stream("attention softmax backward", KernelClass::kSoftmax, s.rows(), s.context,
                    {2 * bytes, bytes, vector_cost::kSoftmax}));
  steps.then(
      gemm("attention query gradient", precision, {s.query, shape.qk_dim, s.context, s.heads}));
  steps.then(
      gemm("attention key gradient", precision, {s.context, shape.qk_dim, s.query, s.heads}));
}

}  // namespace

CoreShape core_shape(const LayerTask& task) {
  const AttentionConfig& a = task.model.attention;
  const std::int64_t heads = a.heads / task.work.tp;
  if (a.kind == AttentionKind::kLatent) {
    return {heads, heads, a.qk_nope_head_dim + a.qk_rope_head_dim, a.v_head_dim};
  }
  return {heads, local_kv_heads(a, task.work.tp), a.head_dim, a.head_dim};
}

void attention_core_forward(StepList& steps, const LayerTask& task) {
  task.work.flash_attention ? flash_forward(steps, task) : stored_forward(steps, task);
}

void attention_core_backward(StepList& steps, const LayerTask& task) {
  if (task.work.recompute == Recompute::kSelective) attention_core_forward(steps, task);
  task.work.flash_attention ? flash_backward(steps, task) : stored_backward(steps, task);
}

}  // namespace orrery
