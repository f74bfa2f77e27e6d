// SPDX-License-Identifier: Apache-2.0
// Tensors of the head and of the loss behind it.
#include <algorithm>

#include "workloads/base/real.h"
#include "workloads/layers/parts/kept_tensors.h"
#include "workloads/ops/kernels.h"

namespace orrery {
namespace {

double vocabulary_elements(const LayerTask& task) {
  return real(task.work.tokens()) *
         real((task.model.vocabulary + task.work.split.tp - 1) / task.work.split.tp);
}

/// Share of the tokens whose fp32 values the loss has at a time: torchtune's
/// CEWithChunkedOutputLoss has eight chunks, Liger's fused_linear_cross_entropy.py as many tokens
/// as make the logits of a chunk as large as the hidden states of all.
double loss_share(const LayerTask& task) {
  switch (task.work.software->loss_tensors.value) {
    case LossTensors::kInPlace:
    case LossTensors::kCompiled:
      return 0;
    case LossTensors::kOperators:
    case LossTensors::kShifted:
      return 1;
    case LossTensors::kChunks:
      return 1.0 / 8;
    case LossTensors::kWithHead:
      return std::min(1.0, real(task.model.hidden) / real(task.model.vocabulary));
  }
  return 1;
}

bool is_narrow(const LayerTask& task) {
  return task.work.software->loss_format.value == LossFormat::kWeights;
}

/// Bytes of an element of log-probabilities and gradients.
double value_bytes(const LayerTask& task) { return is_narrow(task) ? task.bytes() : 4; }

/// Values of the loss for the tokens that it has at a time.
Tensor loss_values(const char* name, const LayerTask& task) {
  return {name, Bytes(vocabulary_elements(task) * loss_share(task) * value_bytes(task)),
          TensorRole::kLogits};
}

/// `values` bytes per logit, where the software shifts logits by a token.
Tensor shifted_values(const char* name, const LayerTask& task, double values) {
  const bool shifts = task.work.software->loss_tensors.value == LossTensors::kShifted;
  return {name, Bytes(shifts ? vocabulary_elements(task) * values : 0), TensorRole::kLogits};
}

}  // namespace

namespace kept {

Tensor logits(const LayerTask& task) {
  const double tokens_at_once = loss_share(task);
  const bool whole = task.work.software->loss_tensors.value != LossTensors::kWithHead;
  return {"logits", Bytes(vocabulary_elements(task) * (whole ? 1 : tokens_at_once) * task.bytes()),
          TensorRole::kLogits};
}

Tensor loss_probabilities(const LayerTask& task) {
  const LossTensors tensors = task.work.software->loss_tensors.value;
  const double share = tensors == LossTensors::kWithHead   ? loss_share(task)
                       : tensors == LossTensors::kCompiled ? 0
                                                           : 1;
  return {"loss probabilities", Bytes(vocabulary_elements(task) * share * value_bytes(task)),
          TensorRole::kLogits};
}

Tensor shifted_logits(const LayerTask& task) {
  return shifted_values("shifted logits", task, task.bytes());
}

Tensor shifted_gradients(const LayerTask& task) {
  return shifted_values("shifted logit gradients", task, is_narrow(task) ? 0 : task.bytes());
}

Tensor compiled_gradients(const LayerTask& task) {
  Tensor tensor = logits(task);
  tensor.name = "compiled logit gradients";
  return tensor;
}

Tensor wide_logits(const LayerTask& task) {
  Tensor tensor = loss_values("wide logits", task);
  if (is_narrow(task)) tensor.bytes = Bytes();
  return tensor;
}

namespace {

/// Fp32 values of a loss whose vocabulary tensor parallel ranks share, by operators.
Tensor split_loss_values(const char* name, const LayerTask& task) {
  Tensor tensor = loss_values(name, task);
  if (task.work.split.tp == 1) tensor.bytes = Bytes();
  return tensor;
}

}  // namespace

Tensor logit_differences(const LayerTask& task) {
  return split_loss_values("logit differences", task);
}

Tensor logit_exponentials(const LayerTask& task) {
  return split_loss_values("logit exponentials", task);
}

Tensor probability_gradients(const LayerTask& task) {
  return loss_values("loss probability gradients", task);
}

Tensor wide_gradients(const LayerTask& task) { return loss_values("wide logit gradients", task); }

Tensor head_input(const LayerTask& task) {
  const bool kept = task.work.software->saved_tensors.value == SavedTensors::kOperators ||
                    task.work.software->keeps_gathered_inputs.value;
  const std::int64_t rows =
      task.work.software->keeps_gathered_inputs.value ? task.work.tokens() : task.work.row_tokens();
  return {"head input", Bytes(kept ? real(rows * task.model.hidden) * task.bytes() : 0),
          TensorRole::kLogits};
}

}  // namespace kept
}  // namespace orrery
