// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "workloads/llm/attention_kernels.h"
#include "workloads/llm/kept_tensors.h"
#include "workloads/llm/kernels.h"
#include "workloads/llm/layer_parts.h"
#include "workloads/llm/real.h"

namespace orrery {
namespace {

/// Latent attention gets here with its keys and values expanded, whatever the phase.
KernelClass kind_of(const LayerTask& task, const AttentionPart& part) {
  if (task.model.attention.kind == AttentionKind::kLatent) return KernelClass::kMlaPrefill;
  return part.phase == Phase::kDecode ? KernelClass::kAttentionDecode
                                      : KernelClass::kAttentionPrefill;
}

AttentionCore core_of(const LayerTask& task, const AttentionPart& part) {
  const LayerWork& w = task.work;
  const CoreShape shape = core_shape(task);
  // Latent attention expands earlier keys and values from the cache before a prefill: they are
  // activations again.
  const bool cached = task.model.attention.kind == AttentionKind::kGrouped;
  const double bytes = activation_bytes(w.precision);
  AttentionCore core;
  core.kind = kind_of(task, part);
  const bool narrow = cached && w.phase != Phase::kTraining && element_bytes(w.kv_precision) < 2;
  core.precision = attention_precision(core.kind, unquantised(w.precision), narrow);
  core.wide_queries = narrow;
  core.sequences = part.sequences;
  core.heads = shape.query_heads;
  core.kv_heads = shape.kv_heads;
  core.query = part.query;
  core.context = part.context;
  core.contexts = part.contexts;
  core.prompts = part.prompts;
  if (core.kind == KernelClass::kAttentionDecode) queries_as_heads(core);
  core.window = task.layer.window;
  core.qk_dim = shape.qk_dim;
  core.v_dim = shape.v_dim;
  core.new_bytes =
      std::min(bytes, element_bytes(core.precision));  // a prefill over fp8 runs in fp8
  core.cache_bytes = cached ? element_bytes(w.kv_precision) : bytes;
  return core;
}

/// The part of a pass in which all sequences are alike.
AttentionPart only_part(const LayerTask& task) { return task.work.attention_parts().front(); }

/// Five products against two: scores again, then the gradients of softmax, values, queries and
/// keys.
void flash_backward(StepList& steps, const LayerTask& task) {
  const AttentionCore core = core_of(task, only_part(task));
  const CoreSize size = core_size(core);
  Kernel kernel = flash_attention("attention backward", core);
  kernel.attention.backward = true;
  kernel.matrix_flops = Flops(2 * size.pairs * real(3 * core.qk_dim + 2 * core.v_dim));
  kernel.vector_flops = Flops(2 * size.pairs * vector_cost::kSoftmax);
  kernel.read = size.query + size.keys + size.values + 2 * size.output;
  kernel.written = size.query + size.keys + size.values;
  steps.then(kernel);
  frees(steps, task, {kept::queries_keys_values, kept::attention_result, kept::attention_sums});
}

/// The square of scores of all heads of a rank: [rows, context].
struct Square {
  std::int64_t heads = 0, query = 0, context = 0;
  std::int64_t rows() const { return heads * query; }
};

Square square_of(const LayerTask& task) {
  return {task.work.sequences * core_shape(task).query_heads, task.work.query, task.work.context};
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
  uses(steps, task, {kept::probabilities});
  frees(steps, task, {kept::dropped_probabilities});
  if (task.work.dropout) {
    steps.then(stream("attention dropout backward", KernelClass::kElementwise, s.rows(), s.context,
                      {bytes + 1, bytes, 1}));
    frees(steps, task, {kept::attention_mask});
  }
  Kernel softmax = stream("attention softmax backward", KernelClass::kSoftmax, s.rows(), s.context,
                          {2 * bytes, bytes, vector_cost::kSoftmax});
  softmax.exponentials = Flops();  // probabilities were kept
  steps.then(softmax);
  frees(steps, task, {kept::probabilities});
  steps.then(
      gemm("attention query gradient", precision, {s.query, shape.qk_dim, s.context, s.heads}));
  steps.then(
      gemm("attention key gradient", precision, {s.context, shape.qk_dim, s.query, s.heads}));
  frees(steps, task, {kept::queries_keys_values});
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

void attention_core_forward(StepList& steps, const LayerTask& task, const AttentionPart& part,
                            Forward forward) {
  const AttentionCore core = core_of(task, part);
  const bool first = forward == Forward::kFirst;
  if (task.work.flash_attention) {
    steps.then(flash_attention("attention", core));
    if (first)
      makes(steps, task, {kept::queries_keys_values, kept::attention_result, kept::attention_sums});
    return;
  }
  for (const Kernel& kernel : kernels_of(stored_attention(core, task.work.dropout)))
    steps.then(kernel);
  if (first) makes(steps, task, {kept::queries_keys_values});
  makes(steps, task, {kept::probabilities, kept::attention_mask, kept::dropped_probabilities});
  if (first && task.work.recompute == Recompute::kSelective)
    frees(steps, task, {kept::probabilities, kept::attention_mask, kept::dropped_probabilities});
}

void attention_core_backward(StepList& steps, const LayerTask& task) {
  if (task.work.recompute == Recompute::kSelective) {
    attention_core_forward(steps, task, only_part(task), Forward::kAgain);
    uses(steps, task, {kept::queries_keys_values});
  }
  task.work.flash_attention ? flash_backward(steps, task) : stored_backward(steps, task);
}

}  // namespace orrery
