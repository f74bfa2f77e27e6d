// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <utility>

#include "workloads/base/real.h"
#include "workloads/layers/attention/chunked_attention.h"
#include "workloads/layers/attention/context_training.h"
#include "workloads/layers/parts/kept_tensors.h"
#include "workloads/ops/kernels.h"
#include "workloads/software/training_software.h"

namespace orrery {
namespace {

const KernelSwitch kDecodesByHead{
    "decodes_by_head", false,
    "let each head of a decode read keys and values for itself, also those that heads share"};

/// Latent attention gets here with its keys and values expanded, whatever the phase.
KernelClass kind_of(const LayerTask& task, const AttentionPart& part) {
  if (task.attention().kind == AttentionKind::kLatent) return KernelClass::kMlaPrefill;
  return part.phase == Phase::kDecode ? KernelClass::kAttentionDecode
                                      : KernelClass::kAttentionPrefill;
}

/// The part of a pass in which all sequences are alike.
AttentionPart only_part(const LayerTask& task) { return task.work.batch.attention_parts().front(); }

/// Masks are drawn inside the kernel.
double dropout_rate(const RankWork& work) {
  return work.passes.dropout ? work.software->attention_dropout.value : 1;
}

void flash_backward(StepList& steps, const LayerTask& task) {
  const AttentionPart part = only_part(task);
  if (task.work.split.context.ranks > 1) {
    split_attention_backward(steps, task, part);
  } else {
    steps.then(attention_gradient("attention backward", attention_core(task, part), task.work));
  }
  frees(steps, task, {kept::queries_keys_values, kept::attention_result, kept::attention_sums});
}

/// The square of scores of all heads of a rank: [rows, context].
struct Square {
  std::int64_t heads = 0, query = 0, context = 0;
  std::int64_t rows() const { return heads * query; }
};

Square square_of(const LayerTask& task) {
  return {task.work.batch.sequences * core_shape(task).query_heads, task.work.batch.query,
          task.work.batch.context};
}

/// Multiplies the gradient of what was multiplied into scores by their scale: what PyTorch's
/// products do in a kernel of their own (tools/autograd/derivatives.yaml, baddbmm:
/// maybe_multiply(grad.bmm(batch2), alpha), likewise for batch2).
void scale_gradient(StepList& steps, const LayerTask& task, const char* name, std::int64_t rows) {
  if (task.work.software->attention_layout.value == Fusion::kFused) return;
  const double bytes = task.bytes();
  steps.then(elementwise(name, rows, core_shape(task).qk_dim, {bytes, bytes, 1}));
}

void stored_backward(StepList& steps, const LayerTask& task) {
  const Square s = square_of(task);
  const CoreShape shape = core_shape(task);
  const Precision precision = unquantised(task.work.formats.precision);
  const double bytes = activation_bytes(precision);
  const std::size_t gradient = steps.cursor();
  steps.then(
      gemm("attention softmax gradient", precision, {s.query, s.context, shape.v_dim, s.heads}));
  steps.aside(
      gemm("attention value gradient", precision, {s.context, shape.v_dim, s.query, s.heads}),
      {gradient});
  uses(steps, task, {kept::probabilities});
  frees(steps, task, {kept::dropped_probabilities});
  if (task.work.passes.dropout) {
    steps.then(
        elementwise("attention dropout backward", s.rows(), s.context, {bytes + 1, bytes, 1}));
    frees(steps, task, {kept::attention_mask});
  }
  const AttentionCore core = attention_core(task, only_part(task));
  const double share = softmax_share(core);
  Kernel softmax = stream("attention softmax backward", KernelClass::kSoftmax, s.rows(), s.context,
                          {2 * share * bytes, bytes, share * vector_cost::kSoftmax});
  if (core.softmax_operators)  // which keep fp32
    add_softmax_operators(softmax, real(s.rows()) * real(s.context), 4 - bytes);
  softmax.exponentials = Flops();  // probabilities were kept
  steps.then(softmax);
  frees(steps, task, {kept::probabilities});
  steps.then(
      gemm("attention query gradient", precision, {s.query, shape.qk_dim, s.context, s.heads}));
  scale_gradient(steps, task, "attention query gradient scale", s.rows());
  steps.then(
      gemm("attention key gradient", precision, {s.context, shape.qk_dim, s.query, s.heads}));
  scale_gradient(steps, task, "attention key gradient scale", s.heads * s.context);
  frees(steps, task, {kept::queries_keys_values, kept::attention_result});
}

/// Copies where the software does not let products read and write parts of a tensor.
void copy_layout(StepList& steps, const LayerTask& task, const char* name, std::int64_t width) {
  const RankWork& w = task.work;
  if (!w.trains() || w.software->attention_layout.value == Fusion::kFused) return;
  const double bytes = activation_bytes(w.formats.precision);
  Kernel copy = elementwise(name, w.tokens(), width, {bytes, bytes, 0});
  copy.rate = w.software->strided();
  steps.then(std::move(copy));
}

std::int64_t result_width(const LayerTask& task) {
  const CoreShape shape = core_shape(task);
  return shape.query_heads * shape.v_dim;
}

std::int64_t input_width(const LayerTask& task) {
  const CoreShape shape = core_shape(task);
  return shape.query_heads * shape.qk_dim + shape.kv_heads * (shape.qk_dim + shape.v_dim);
}

void core_forward(StepList& steps, const LayerTask& task, const AttentionPart& part) {
  const AttentionCore core = attention_core(task, part);
  if (task.work.flash_attention) {
    if (task.work.split.context.ranks > 1) {
      split_attention_forward(steps, task, part);
    } else {
      Kernel kernel = attention_forward("attention", core, task.work);
      // Scores, softmax, values, and a copy of what heads give.
      kernel.launches = task.work.launches(4);
      steps.then(std::move(kernel));
    }
    makes(steps, task, {kept::queries_keys_values, kept::attention_result, kept::attention_sums});
    return;
  }
  for (Kernel kernel : kernels_of(stored_attention(core, task.work.passes.dropout))) {
    if (core.softmax_operators && kernel.kind == KernelClass::kSoftmax)
      add_softmax_operators(kernel, real(kernel.m) * real(kernel.n), 0);
    steps.then(std::move(kernel));
  }
  makes(steps, task, {kept::queries_keys_values, kept::attention_result});
  makes(steps, task, {kept::probabilities, kept::attention_mask, kept::dropped_probabilities});
}

/// What one sees of the part in this layer.
AttentionPart seen_part(const LayerTask& task, const AttentionPart& part) {
  if (task.layer.chunk == 0) return part;
  return in_chunks(part, task.layer.chunk,
                   task.work.batch.mean_lengths ? ChunkPhase::kMiddle : ChunkPhase::kExact);
}

}  // namespace

AttentionCore attention_core(const LayerTask& task, const AttentionPart& whole) {
  const AttentionPart part = seen_part(task, whole);
  const RankWork& w = task.work;
  const CoreShape shape = core_shape(task);
  // Latent attention expands earlier keys and values from the cache before a prefill: they are
  // activations again.
  const bool cached = task.attention().kind == AttentionKind::kGrouped;
  const double bytes = activation_bytes(w.formats.precision);
  AttentionCore core;
  core.kind = kind_of(task, part);
  const bool narrow = cached && !w.trains() && element_bytes(w.formats.kv_precision) < 2;
  core.precision = attention_precision(core.kind, unquantised(w.formats.precision), narrow);
  core.wide_queries = narrow;
  core.sequences = part.sequences;
  core.heads = shape.query_heads;
  core.kv_heads = shape.kv_heads;
  core.query = part.query;
  core.context = part.context;
  core.contexts = part.contexts;
  core.prompts = part.prompts;
  if (core.kind == KernelClass::kAttentionDecode) queries_as_heads(core);
  if (core.kind == KernelClass::kAttentionDecode && w.kernels.on(kDecodesByHead))
    core.kv_heads = core.heads;
  core.window = task.layer.window;
  core.causal = task.layer.kind != LayerKind::kEncoder && !w.place.to_encoder;
  core.biased = task.model.relative_positions > 0 && !w.place.to_encoder;
  core.sinks = w.trains() && task.model.attention.sinks;
  if (w.trains()) {
    core.skips_masked = w.software->causal_softmax.value == MaskedSoftmax::kTriangle;
    core.softmax_operators = w.software->causal_softmax.value == MaskedSoftmax::kOperators;
  }
  core.qk_dim = shape.qk_dim;
  core.v_dim = shape.v_dim;
  core.new_bytes =
      std::min(bytes, element_bytes(core.precision));  // a prefill over fp8 runs in fp8
  core.cache_bytes = cached ? element_bytes(w.formats.kv_precision) : bytes;
  return core;
}

Kernel attention_forward(const std::string& name, const AttentionCore& core, const RankWork& work) {
  Kernel kernel = flash_attention(name, core);
  add_sinks(kernel, core);
  if (work.trains()) kernel.rate = work.software->attention_forward.value * dropout_rate(work);
  return kernel;
}

Kernel attention_gradient(const std::string& name, const AttentionCore& core,
                          const RankWork& work) {
  Kernel kernel = flash_attention_gradient(name, core);
  kernel.rate = work.software->attention_backward.value * dropout_rate(work);
  add_sinks(kernel, core);
  return kernel;
}

CoreShape core_shape(const LayerTask& task) {
  const AttentionConfig& a = task.attention();
  const std::int64_t heads = a.heads / task.work.split.tp;
  if (a.kind == AttentionKind::kLatent)
    return {heads, heads, a.qk_nope_head_dim + a.qk_rope_head_dim, a.v_head_dim};
  return {heads, local_kv_heads(a, task.work.split.tp), a.head_dim, a.value_dim()};
}

void attention_core_forward(StepList& steps, const LayerTask& task, const AttentionPart& part) {
  core_forward(steps, task, part);
  copy_layout(steps, task, "attention output transpose", result_width(task));
}

void attention_core_backward(StepList& steps, const LayerTask& task) {
  if (task.work.recomputes(RecomputeModule::kCoreAttn)) {
    attention_core_forward(steps, task.again(), only_part(task));
    uses(steps, task, {kept::queries_keys_values});
  }
  // Products of stored scores read the gradient of what was copied as it lies: a view.
  if (task.work.flash_attention)
    copy_layout(steps, task, "attention output transpose backward", result_width(task));
  task.work.flash_attention ? flash_backward(steps, task) : stored_backward(steps, task);
  copy_layout(steps, task, "qkv gradient concatenation", input_width(task));
}

}  // namespace orrery
