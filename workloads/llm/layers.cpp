// SPDX-License-Identifier: Apache-2.0
#include "workloads/llm/layers.h"

#include "workloads/llm/context_parallel.h"
#include "workloads/llm/kept_tensors.h"
#include "workloads/llm/kernels.h"
#include "workloads/llm/layer_parts.h"

namespace orrery {
namespace {

bool is_training(const LayerTask& task) { return task.work.phase == Phase::kTraining; }

/// Tokens whose second half of the layer (MLP or experts) is this rank's.
std::int64_t second_half_rows(const LayerTask& task) {
  return task.scatters_attention() ? task.work.split_tokens() : task.work.tokens();
}

/// Adds the block's output to the residual stream. In inference the next norm does it.
void residual_forward(StepList& steps, const std::string& name, const LayerTask& task,
                      std::int64_t rows, KeptTensor mask) {
  if (!is_training(task)) return;
  const double bytes = activation_bytes(task.work.precision);
  const bool dropout = task.work.dropout;
  steps.then(
      stream(name, KernelClass::kElementwise, rows, task.model.hidden,
             {2 * bytes, bytes + (dropout ? 1 : 0), 1 + (dropout ? vector_cost::kDropout : 0)}));
  makes(steps, task, {mask});
}

/// An addition passes its gradient on as it is; dropout masks the block's.
void residual_backward(StepList& steps, const std::string& name, const LayerTask& task,
                       KeptTensor mask) {
  if (!task.work.dropout) return;
  const double bytes = activation_bytes(task.work.precision);
  steps.then(stream(name, KernelClass::kElementwise, task.work.row_tokens(), task.model.hidden,
                    {bytes + 1, bytes, 1}));
  frees(steps, task, {mask});
}

/// The norm after a block (gemma2), before its residual.
void output_norm_forward(StepList& steps, const std::string& name, const LayerTask& task,
                         std::int64_t rows, KeptTensor input) {
  if (task.model.norms_per_layer < 4) return;
  const double bytes = activation_bytes(task.work.precision);
  steps.then(stream(name, KernelClass::kNormalization, rows, task.model.hidden,
                    {bytes, bytes, vector_cost::kRmsNorm}));
  makes(steps, task, {input});
}

void output_norm_backward(StepList& steps, const std::string& name, const LayerTask& task,
                          KeptTensor input) {
  if (task.model.norms_per_layer < 4) return;
  const double bytes = activation_bytes(task.work.precision);
  steps.then(stream(name, KernelClass::kNormalization, task.work.row_tokens(), task.model.hidden,
                    {2 * bytes, bytes, vector_cost::kNormBackward}));
  frees(steps, task, {input});
}

void attention_forward(StepList& steps, const LayerTask& task) {
  task.model.attention.kind == AttentionKind::kLatent ? latent_attention_forward(steps, task)
                                                      : grouped_attention_forward(steps, task);
}

void attention_backward(StepList& steps, const LayerTask& task) {
  task.model.attention.kind == AttentionKind::kLatent ? latent_attention_backward(steps, task)
                                                      : grouped_attention_backward(steps, task);
}

void feed_forward(StepList& steps, const LayerTask& task) {
  task.layer.moe ? moe_forward(steps, task) : mlp_forward(steps, task);
}

void feed_backward(StepList& steps, const LayerTask& task) {
  task.layer.moe ? moe_backward(steps, task) : mlp_backward(steps, task);
}

StepList attention_half(const LayerTask& task) {
  LayerWork of_attention = task.work;
  of_attention.precision = task.precision(task.layer.attention);
  const LayerTask attention{task.model, task.layer, of_attention, task.forward};
  const std::int64_t second = second_half_rows(task);
  StepList steps;
  steps.tell_tensors(task.work.tensors);
  steps.then(norm_forward("attention norm", attention, task.work.row_tokens()));
  makes(steps, task, {kept::layer_input});
  attention_forward(steps, attention);
  output_norm_forward(steps, "attention output norm", task, second,
                      kept::attention_output_norm_input);
  residual_forward(steps, "attention residual", task, second, kept::attention_residual_mask);
  return steps;
}

StepList feed_half(const LayerTask& task) {
  const std::int64_t rows = task.work.row_tokens();
  StepList steps;
  steps.tell_tensors(task.work.tensors);
  // Parallel blocks (one norm) share the first norm, which then is not computed again.
  if (task.model.norms_per_layer > 1) {
    steps.then(norm_forward("mlp norm", task, second_half_rows(task)));
    makes(steps, task, {kept::mlp_norm_input});
  }
  feed_forward(steps, task);
  output_norm_forward(steps, "mlp output norm", task, rows, kept::mlp_output_norm_input);
  residual_forward(steps, "mlp residual", task, rows, kept::mlp_residual_mask);
  makes(steps, task, {kept::saved_products, kept::adapter_columns});
  return steps;
}

/// A part of a matrix's columns, as a product of its own.
Linear columns_of(Linear linear, const char* name, std::int64_t out) {
  linear.name = name;
  linear.out = out;
  return linear;
}

/// Forward operators of a layer without experts but every second product (queries, values, the
/// first and the last matrix of the MLP are kept) and attention. Nothing needs what comes behind
/// the MLP's function.
StepList operators_again(const LayerTask& task) {
  const LayerWork& w = task.work;
  const CoreShape shape = core_shape(task);
  const Linear qkv = attention_linears(task).front(), output = attention_linears(task).back();
  const Linear up = mlp_linears(task).front(), down = mlp_linears(task).back();
  StepList steps;
  steps.tell_tensors(w.tensors);
  steps.then(norm_forward("attention norm", task, w.row_tokens()));
  column_forward(steps, w, {columns_of(qkv, "key", shape.kv_heads * shape.qk_dim)},
                 task.model.hidden);
  makes(steps, task, {kept::attention_input, kept::unnormed_heads});
  rotary_forward(steps, task);
  makes(steps, task, {kept::queries_keys_values});
  steps.then(gemm(output.name, output.precision, {w.tokens(), output.out, output.in}));
  residual_forward(steps, "attention residual", task, w.row_tokens(),
                   kept::attention_residual_mask);
  steps.then(norm_forward("mlp norm", task, w.row_tokens()));
  makes(steps, task, {kept::mlp_norm_input});
  column_forward(steps, w, {columns_of(up, "up", down.in)}, task.model.hidden);
  makes(steps, task, {kept::mlp_input});
  steps.then(activation("activation", w.function_precision(up.precision), w.tokens(), down.in,
                        task.model.mlp.gated));
  makes(steps, task, {kept::mlp_function_input, kept::down_input});
  return steps;
}

}  // namespace

Kernel norm_forward(const std::string& name, const LayerTask& task, std::int64_t rows) {
  return norm(name, task.work.normed_precision(),
              {rows, task.model.hidden, task.model.norm_bias, !is_training(task)});
}

void norm_backward(StepList& steps, const std::string& name, const LayerTask& task,
                   std::int64_t rows, PastBlock past) {
  const TrainingSoftware& software = *task.work.software;
  const double bytes = activation_bytes(task.work.precision);
  const std::int64_t hidden = task.model.hidden;
  if (software.norm_backward.value == NormBackward::kTwoPasses && !task.work.lora.trains) {
    steps.aside(stream(name + " of weights", KernelClass::kNormalization, rows, hidden,
                       {2 * bytes, 0, vector_cost::kNormBackward / 2}),
                {steps.cursor()});
  }
  const bool residual = past == PastBlock::kGradient;
  const bool apart = software.residual_gradients.value == Fusion::kApart;
  const double adds = residual && !apart ? 1 : 0;
  steps.then(stream(name, KernelClass::kNormalization, rows, hidden,
                    {(2 + adds) * bytes, bytes, vector_cost::kNormBackward + adds}));
  if (residual && apart) {
    steps.then(
        stream(name + " residual", KernelClass::kElementwise, rows, hidden, {2 * bytes, bytes, 1}));
  }
}

Precision unquantised(Precision precision) {
  return element_bytes(precision) < 2 ? Precision::kBf16 : precision;
}

Precision LayerTask::precision(StoredFormat stored) const {
  if (work.phase == Phase::kTraining) return work.precision;
  if (stored == StoredFormat::kSixteenBit) return unquantised(work.precision);
  const bool scaled = stored == StoredFormat::kMxFourBit && work.mx_products;
  return scaled && element_bytes(work.precision) >= 2 ? Precision::kFp8 : work.precision;
}

WeightFormat LayerTask::weights(StoredFormat stored) const {
  // Only operands of 16 bits and more are what narrow weights are widened to.
  if (work.phase == Phase::kTraining || element_bytes(work.precision) < 2) return {};
  if (stored == StoredFormat::kFourBit || stored == StoredFormat::kMxFourBit)
    return {.bits = 4, .sparse = false, .marlin = work.marlin};
  if (stored == StoredFormat::kEightBit) return {.bits = 8, .sparse = false, .marlin = work.marlin};
  return {};
}

StepList attention_part_forward(const LlmConfig& model, const LayerConfig& layer,
                                const LayerWork& work, const AttentionPart& part) {
  LayerWork of_attention = work;
  of_attention.precision = LayerTask{model, layer, work}.precision(layer.attention);
  const LayerTask attention{model, layer, of_attention};
  StepList steps;
  model.attention.kind == AttentionKind::kLatent ? latent_core_forward(steps, attention, part)
                                                 : context_core_forward(steps, attention, part);
  return steps;
}

StepList attention_half_forward(const LlmConfig& model, const LayerConfig& layer,
                                const LayerWork& work) {
  return attention_half({model, layer, work});
}

StepList feed_half_forward(const LlmConfig& model, const LayerConfig& layer,
                           const LayerWork& work) {
  return feed_half({model, layer, work});
}

StepList layer_forward(const LlmConfig& model, const LayerConfig& layer, const LayerWork& work) {
  StepList steps = attention_half_forward(model, layer, work);
  steps.append(feed_half_forward(model, layer, work));
  return steps;
}

StepList layer_again(const LlmConfig& model, const LayerConfig& layer, const LayerWork& work) {
  const LayerTask again{model, layer, work, Forward::kAgain};
  if (work.recompute == Recompute::kOperators) return operators_again(again);
  StepList steps;
  if (work.recompute != Recompute::kFull) return steps;
  steps.append(attention_half(again));
  steps.append(feed_half(again));
  return steps;
}

StepList layer_backward(const LlmConfig& model, const LayerConfig& layer, const LayerWork& work) {
  StepList steps = layer_again(model, layer, work);
  steps.append(layer_gradients(model, layer, work));
  return steps;
}

StepList layer_gradients(const LlmConfig& model, const LayerConfig& layer, const LayerWork& work) {
  const LayerTask task{model, layer, work};
  const std::int64_t rows = work.row_tokens();
  StepList steps;
  steps.tell_tensors(work.tensors);
  residual_backward(steps, "mlp residual backward", task, kept::mlp_residual_mask);
  output_norm_backward(steps, "mlp output norm backward", task, kept::mlp_output_norm_input);
  feed_backward(steps, task);
  if (model.norms_per_layer > 1) {
    norm_backward(steps, "mlp norm backward", task, rows, PastBlock::kGradient);
    frees(steps, task, {kept::mlp_norm_input});
  }
  residual_backward(steps, "attention residual backward", task, kept::attention_residual_mask);
  output_norm_backward(steps, "attention output norm backward", task,
                       kept::attention_output_norm_input);
  attention_backward(steps, task);
  norm_backward(steps, "attention norm backward", task, rows, PastBlock::kGradient);
  frees(steps, task, {kept::layer_input, kept::adapter_columns});
  return steps;
}

}  // namespace orrery
