// SPDX-License-Identifier: Apache-2.0
// Tensors of the head and of the loss behind it.
#include <algorithm>

#include "workloads/base/real.h"
#include "workloads/layers/parts/kept_tensors.h"
#include "workloads/ops/kernels.h"

namespace orrery {
namespace {

double vocabulary_elements(const LlmConfig& model, const RankWork& work) {
  return real(work.tokens()) * real((model.vocabulary + work.split.tp - 1) / work.split.tp);
}

/// Share of the tokens whose fp32 values the loss has at a time: torchtune's
/// CEWithChunkedOutputLoss has eight chunks, Liger's fused_linear_cross_entropy.py as many tokens
/// as make the logits of a chunk as large as the hidden states of all.
double loss_share(const LlmConfig& model, const RankWork& work) {
  switch (work.software->loss_tensors.value) {
    case LossTensors::kInPlace:
    case LossTensors::kCompiled:
      return 0;
    case LossTensors::kOperators:
    case LossTensors::kShifted:
      return 1;
    case LossTensors::kChunks:
      return 1.0 / 8;
    case LossTensors::kWithHead:
      return std::min(1.0, real(model.hidden) / real(model.vocabulary));
  }
  return 1;
}

bool is_narrow(const RankWork& work) {
  return work.software->loss_format.value == LossFormat::kWeights;
}

/// Bytes of an element of log-probabilities and gradients.
double value_bytes(const RankWork& work) {
  return is_narrow(work) ? activation_bytes(work.formats.precision) : 4;
}

/// Values of the loss for the tokens that it has at a time.
Tensor loss_values(const char* name, const LlmConfig& model, const RankWork& work) {
  return {name,
          Bytes(vocabulary_elements(model, work) * loss_share(model, work) * value_bytes(work)),
          TensorRole::kLogits};
}

/// `values` bytes per logit, where the software shifts logits by a token.
Tensor shifted_values(const char* name, const LlmConfig& model, const RankWork& work,
                      double values) {
  const bool shifts = work.software->loss_tensors.value == LossTensors::kShifted;
  return {name, Bytes(shifts ? vocabulary_elements(model, work) * values : 0), TensorRole::kLogits};
}

}  // namespace

namespace kept {

Tensor logits(const LlmConfig& model, const RankWork& work) {
  const double tokens_at_once = loss_share(model, work);
  const bool whole = work.software->loss_tensors.value != LossTensors::kWithHead;
  return {"logits",
          Bytes(vocabulary_elements(model, work) * (whole ? 1 : tokens_at_once) *
                activation_bytes(work.formats.precision)),
          TensorRole::kLogits};
}

Tensor loss_probabilities(const LlmConfig& model, const RankWork& work) {
  const LossTensors tensors = work.software->loss_tensors.value;
  const double share = tensors == LossTensors::kWithHead   ? loss_share(model, work)
                       : tensors == LossTensors::kCompiled ? 0
                                                           : 1;
  return {"loss probabilities", Bytes(vocabulary_elements(model, work) * share * value_bytes(work)),
          TensorRole::kLogits};
}

Tensor shifted_logits(const LlmConfig& model, const RankWork& work) {
  return shifted_values("shifted logits", model, work, activation_bytes(work.formats.precision));
}

Tensor shifted_gradients(const LlmConfig& model, const RankWork& work) {
  return shifted_values("shifted logit gradients", model, work,
                        is_narrow(work) ? 0 : activation_bytes(work.formats.precision));
}

Tensor compiled_gradients(const LlmConfig& model, const RankWork& work) {
  Tensor tensor = logits(model, work);
  tensor.name = "compiled logit gradients";
  return tensor;
}

Tensor wide_logits(const LlmConfig& model, const RankWork& work) {
  Tensor tensor = loss_values("wide logits", model, work);
  if (is_narrow(work)) tensor.bytes = Bytes();
  return tensor;
}

namespace {

/// Fp32 values of a loss whose vocabulary tensor parallel ranks share, by operators.
Tensor split_loss_values(const char* name, const LlmConfig& model, const RankWork& work) {
  Tensor tensor = loss_values(name, model, work);
  if (work.split.tp == 1) tensor.bytes = Bytes();
  return tensor;
}

}  // namespace

Tensor logit_differences(const LlmConfig& model, const RankWork& work) {
  return split_loss_values("logit differences", model, work);
}

Tensor logit_exponentials(const LlmConfig& model, const RankWork& work) {
  return split_loss_values("logit exponentials", model, work);
}

Tensor probability_gradients(const LlmConfig& model, const RankWork& work) {
  return loss_values("loss probability gradients", model, work);
}

Tensor wide_gradients(const LlmConfig& model, const RankWork& work) {
  return loss_values("wide logit gradients", model, work);
}

Tensor head_input(const LlmConfig& model, const RankWork& work) {
  const bool kept = work.software->saved_tensors.value == SavedTensors::kOperators ||
                    work.software->keeps_gathered_inputs.value;
  const std::int64_t rows =
      work.software->keeps_gathered_inputs.value ? work.tokens() : work.row_tokens();
  return {"head input",
          Bytes(kept ? real(rows * model.hidden) * activation_bytes(work.formats.precision) : 0),
          TensorRole::kLogits};
}

}  // namespace kept
}  // namespace orrery
