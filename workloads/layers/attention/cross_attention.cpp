// SPDX-License-Identifier: Apache-2.0
// Attention of a decoder's tokens to the output of the encoder (T5, arXiv 1910.10683).
#include <optional>

#include "workloads/base/real.h"
#include "workloads/layers/parts/kept_tensors.h"
#include "workloads/layers/parts/layer_parts.h"
#include "workloads/layers/parts/linear.h"
#include "workloads/ops/kernels.h"

namespace orrery {
namespace {

Linear cross_linear(const LayerTask& task, const char* name, std::int64_t in, std::int64_t out) {
  return {name,
          in,
          out,
          task.work.formats.precision,
          task.weights(task.layer.attention),
          std::nullopt,
          task.attention().qkv_bias ? Bias::kAdded : Bias::kNone};
}

Linear cross_query_of(const LayerTask& task) {
  const CoreShape shape = core_shape(task);
  return cross_linear(task, "cross query", task.model.hidden, shape.query_heads * shape.qk_dim);
}

Linear cross_key_value_of(const LayerTask& task) {
  const CoreShape shape = core_shape(task);
  return cross_linear(task, "cross key-value", task.model.hidden,
                      shape.kv_heads * (shape.qk_dim + shape.v_dim));
}

Linear cross_output_of(const LayerTask& task) {
  const CoreShape shape = core_shape(task);
  Linear output =
      cross_linear(task, "cross output", shape.query_heads * shape.v_dim, task.model.hidden);
  output.bias = task.attention().output_bias ? Bias::kPassedOn : Bias::kNone;
  return output;
}

/// Attention of a decoder's tokens to all of the encoder's.
RankWork to_encoder(RankWork work) {
  work.place.to_encoder = true;
  work.batch.context = work.batch.encoder;
  return work;
}

}  // namespace

StepList cross_half_forward(const LayerTask& task) {
  const RankWork& w = task.work;
  const RankWork across = to_encoder(w), of_encoder = encoder_work(w);
  const LayerTask crossing{task.model, task.layer, across, task.forward};
  StepList steps;
  issued(steps, task, GraphPart::kAttention);
  steps.tell_tensors(w.passes.tensors);
  steps.then(norm_forward("cross norm", task, w.row_tokens()));
  makes(steps, task, {kept::cross_norm_input});
  column_forward(steps, w, {cross_query_of(task)}, task.model.hidden);
  makes(steps, task, {kept::cross_input});
  column_forward(steps, of_encoder, {cross_key_value_of(task)}, task.model.hidden);
  if (task.forward == Forward::kFirst) makes(steps, task, {kept::encoder_output});
  attention_core_forward(steps, crossing, across.batch.attention_parts().front());
  makes(steps, crossing, {kept::output_projection_input});
  row_forward(steps, w, cross_output_of(task),
              w.split.sp ? RowOutput::kScattered : RowOutput::kReduced);
  const double bytes = activation_bytes(w.formats.precision);
  const double drops = w.passes.dropout ? 1 : 0;
  steps.then(compiled(
      stream("cross residual", KernelClass::kElementwise, w.row_tokens(), task.model.hidden,
             {2 * bytes, bytes + drops, 1 + drops * vector_cost::kDropout}),
      w));
  makes(steps, task, {kept::attention_residual_mask});
  return steps;
}

StepList cross_half_backward(const LayerTask& task) {
  const RankWork& w = task.work;
  const RankWork across = to_encoder(w), of_encoder = encoder_work(w);
  const LayerTask crossing{task.model, task.layer, across, task.forward};
  const double bytes = activation_bytes(w.formats.precision);
  StepList steps;
  issued(steps, task, GraphPart::kAttention);
  steps.tell_tensors(w.passes.tensors);
  if (w.passes.dropout) {
    steps.then(compiled(stream("cross residual backward", KernelClass::kElementwise, w.row_tokens(),
                               task.model.hidden, {bytes + 1, bytes, 1}),
                        w));
    frees(steps, task, {kept::attention_residual_mask});
  }
  row_backward(steps, w, cross_output_of(task));
  if (!w.formats.narrow_inputs) uses(steps, crossing, {kept::attention_result});
  frees(steps, crossing, {kept::output_projection_input});
  attention_core_backward(steps, crossing);
  column_backward(steps, of_encoder, {cross_key_value_of(task)}, task.model.hidden);
  // Gradients of the encoder's output are added up over layers.
  steps.then(stream("cross encoder gradient addition", KernelClass::kElementwise,
                    of_encoder.row_tokens(), task.model.hidden, {2 * bytes, bytes, 1}));
  frees(steps, task, {kept::encoder_output});
  column_backward(steps, w, {cross_query_of(task)}, task.model.hidden);
  frees(steps, task, {kept::cross_input});
  norm_backward(steps, "cross norm backward", task, w.row_tokens(), PastBlock::kGradient);
  frees(steps, task, {kept::cross_norm_input});
  return steps;
}

StepList encoder_end_forward(const LlmConfig& model, const RankWork& work) {
  const LayerConfig none;
  const RankWork of_encoder = encoder_work(work);
  StepList steps;
  issued(steps, {model, none, of_encoder}, GraphPart::kOther);
  steps.tell_tensors(work.passes.tensors);
  const LayerTask task{model, none, of_encoder};
  steps.then(norm_forward("encoder norm", task, of_encoder.row_tokens()));
  makes(steps, task, {kept::encoder_norm_input});
  return steps;
}

StepList encoder_end_backward(const LlmConfig& model, const RankWork& work) {
  const LayerConfig none;
  const RankWork of_encoder = encoder_work(work);
  StepList steps;
  issued(steps, {model, none, of_encoder}, GraphPart::kOther);
  steps.tell_tensors(work.passes.tensors);
  const LayerTask task{model, none, of_encoder};
  norm_backward(steps, "encoder norm backward", task, of_encoder.row_tokens(), PastBlock::kNothing);
  frees(steps, task, {kept::encoder_norm_input});
  return steps;
}

}  // namespace orrery
