// SPDX-License-Identifier: Apache-2.0
#include "workloads/llm/layers.h"

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
                      std::int64_t rows) {
  if (!is_training(task)) return;
  const double bytes = activation_bytes(task.work.precision);
  const bool dropout = task.work.dropout;
  steps.then(
      stream(name, KernelClass::kElementwise, rows, task.model.hidden,
             {2 * bytes, bytes + (dropout ? 1 : 0), 1 + (dropout ? vector_cost::kDropout : 0)}));
}

/// An addition passes its gradient on as it is; dropout masks the block's.
void residual_backward(StepList& steps, const std::string& name, const LayerTask& task) {
  if (!task.work.dropout) return;
  const double bytes = activation_bytes(task.work.precision);
  steps.then(stream(name, KernelClass::kElementwise, task.work.row_tokens(), task.model.hidden,
                    {bytes + 1, bytes, 1}));
}

/// The norm after a block (gemma2), before its residual.
void output_norm_forward(StepList& steps, const std::string& name, const LayerTask& task,
                         std::int64_t rows) {
  if (task.model.norms_per_layer < 4) return;
  const double bytes = activation_bytes(task.work.precision);
  steps.then(stream(name, KernelClass::kNormalization, rows, task.model.hidden,
                    {bytes, bytes, vector_cost::kRmsNorm}));
}

void output_norm_backward(StepList& steps, const std::string& name, const LayerTask& task) {
  if (task.model.norms_per_layer < 4) return;
  const double bytes = activation_bytes(task.work.precision);
  steps.then(stream(name, KernelClass::kNormalization, task.work.row_tokens(), task.model.hidden,
                    {2 * bytes, bytes, vector_cost::kNormBackward}));
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

}  // namespace

Kernel norm_forward(const std::string& name, const LayerTask& task, std::int64_t rows) {
  return norm(name, task.work.precision,
              {rows, task.model.hidden, task.model.norm_bias, !is_training(task)});
}

Kernel norm_backward(const std::string& name, const LayerTask& task, std::int64_t rows) {
  const double bytes = activation_bytes(task.work.precision);
  return stream(name, KernelClass::kNormalization, rows, task.model.hidden,
                {3 * bytes, bytes, vector_cost::kNormBackward + 1});
}

Precision unquantised(Precision precision) {
  return element_bytes(precision) < 2 ? Precision::kBf16 : precision;
}

Precision LayerTask::precision(StoredFormat stored) const {
  const bool left_out = stored == StoredFormat::kSixteenBit && work.phase != Phase::kTraining;
  return left_out ? unquantised(work.precision) : work.precision;
}

WeightFormat LayerTask::weights(StoredFormat stored) const {
  // Only operands of 16 bits and more are what narrow weights are widened to.
  if (work.phase == Phase::kTraining || element_bytes(work.precision) < 2) return {};
  if (stored == StoredFormat::kFourBit) return {.bits = 4, .sparse = false};
  if (stored == StoredFormat::kEightBit) return {.bits = 8, .sparse = false};
  return {};
}

StepList attention_part_forward(const LlmConfig& model, const LayerConfig& layer,
                                const LayerWork& work, const AttentionPart& part) {
  LayerWork of_attention = work;
  of_attention.precision = LayerTask{model, layer, work}.precision(layer.attention);
  const LayerTask attention{model, layer, of_attention};
  StepList steps;
  model.attention.kind == AttentionKind::kLatent
      ? latent_core_forward(steps, attention, part)
      : attention_core_forward(steps, attention, part);
  return steps;
}

StepList attention_half_forward(const LlmConfig& model, const LayerConfig& layer,
                                const LayerWork& work) {
  const LayerTask task{model, layer, work};
  LayerWork of_attention = work;
  of_attention.precision = task.precision(layer.attention);
  const LayerTask attention{model, layer, of_attention};
  const std::int64_t second = second_half_rows(task);
  StepList steps;
  steps.then(norm_forward("attention norm", attention, work.row_tokens()));
  attention_forward(steps, attention);
  output_norm_forward(steps, "attention output norm", task, second);
  residual_forward(steps, "attention residual", task, second);
  return steps;
}

StepList feed_half_forward(const LlmConfig& model, const LayerConfig& layer,
                           const LayerWork& work) {
  const LayerTask task{model, layer, work};
  StepList steps;
  // Parallel blocks (one norm) share the first norm, which then is not computed again.
  if (model.norms_per_layer > 1)
    steps.then(norm_forward("mlp norm", task, second_half_rows(task)));
  feed_forward(steps, task);
  output_norm_forward(steps, "mlp output norm", task, work.row_tokens());
  residual_forward(steps, "mlp residual", task, work.row_tokens());
  return steps;
}

StepList layer_forward(const LlmConfig& model, const LayerConfig& layer, const LayerWork& work) {
  StepList steps = attention_half_forward(model, layer, work);
  steps.append(feed_half_forward(model, layer, work));
  return steps;
}

StepList layer_backward(const LlmConfig& model, const LayerConfig& layer, const LayerWork& work) {
  const LayerTask task{model, layer, work};
  const std::int64_t rows = work.row_tokens();
  StepList steps;
  if (work.recompute == Recompute::kFull) steps.append(layer_forward(model, layer, work));
  residual_backward(steps, "mlp residual backward", task);
  output_norm_backward(steps, "mlp output norm backward", task);
  feed_backward(steps, task);
  if (model.norms_per_layer > 1) steps.then(norm_backward("mlp norm backward", task, rows));
  residual_backward(steps, "attention residual backward", task);
  output_norm_backward(steps, "attention output norm backward", task);
  attention_backward(steps, task);
  steps.then(norm_backward("attention norm backward", task, rows));
  return steps;
}

}  // namespace orrery
