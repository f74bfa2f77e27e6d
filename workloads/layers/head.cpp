// SPDX-License-Identifier: Apache-2.0
// The head of a model: final norm, output projection, and the loss behind it or the choice of the
// next token.
#include <algorithm>
#include <utility>

#include "workloads/base/real.h"
#include "workloads/layers/layers.h"
#include "workloads/layers/parts/linear.h"
#include "workloads/layers/parts/residuals.h"
#include "workloads/models/encoder_alone.h"
#include "workloads/software/training_software.h"

namespace orrery {
namespace {

// Tensors of the loss: scores of the vocabulary on this rank, and what is beside them.

double vocabulary_elements(const LayerTask& task) {
  return real(task.work.tokens()) *
         real((task.model.vocabulary + task.work.split.tp - 1) / task.work.split.tp);
}

/// Share of the tokens whose fp32 values the loss has at a time: torchtune's
/// CEWithChunkedOutputLoss has eight chunks, Liger's fused_linear_cross_entropy.py as many tokens
/// as make the logits of a chunk as large as the hidden states of all.
double loss_share(const LayerTask& task) {
  const LossTensors tensors = task.work.software->loss_tensors.value;
  if (tensors == LossTensors::kChunks) return 1.0 / 8;
  if (tensors == LossTensors::kWithHead)
    return std::min(1.0, real(task.model.hidden) / real(task.model.vocabulary));
  return tensors == LossTensors::kInPlace || tensors == LossTensors::kCompiled ? 0 : 1;
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

/// The copy without the last token, and the gradient of the copy in 16 bits.
Tensor shifted_logits(const LayerTask& task) {
  return shifted_values("shifted logits", task, task.bytes());
}

Tensor shifted_gradients(const LayerTask& task) {
  return shifted_values("shifted logit gradients", task, is_narrow(task) ? 0 : task.bytes());
}

/// Written by a compiled loss.
Tensor compiled_gradients(const LayerTask& task) {
  Tensor tensor = logits(task);
  tensor.name = "compiled logit gradients";
  return tensor;
}

/// A loss by operators widens logits to fp32, and makes a gradient of its probabilities and one of
/// the wide logits while the probabilities are alive (PyTorch: nll_loss_backward,
/// _log_softmax_backward_data).
Tensor wide_logits(const LayerTask& task) {
  Tensor tensor = loss_values("wide logits", task);
  if (is_narrow(task)) tensor.bytes = Bytes();
  return tensor;
}

/// Fp32 values of a loss whose vocabulary tensor parallel ranks share, by operators.
Tensor split_loss_values(const char* name, const LayerTask& task) {
  Tensor tensor = loss_values(name, task);
  if (task.work.split.tp == 1) tensor.bytes = Bytes();
  return tensor;
}

/// Logits without their maximum, in the forward pass, and exponentials, in the backward pass
/// (PyTorch torch/distributed/tensor/parallel/loss.py).
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

/// Where it is kept apart from the layers' tensors.
Tensor head_input(const LayerTask& task) {
  const bool kept = task.work.software->saved_tensors.value == SavedTensors::kOperators ||
                    task.work.software->keeps_gathered_inputs.value;
  const std::int64_t rows =
      task.work.software->keeps_gathered_inputs.value ? task.work.tokens() : task.work.row_tokens();
  return {"head input", Bytes(kept ? real(rows * task.model.hidden) * task.bytes() : 0),
          TensorRole::kLogits};
}

/// Checkpoints seldom quantise the head, and training never does. The vocabulary is padded to a
/// multiple of tp, as in Megatron-LM.
Linear head_of(const LayerTask& task) {
  const LlmConfig& model = task.model;
  const int tp = task.work.split.tp;
  const std::int64_t columns = (model.vocabulary + tp - 1) / tp;
  if (task.work.trains() || model.head == StoredFormat::kSixteenBit)
    return {"head", model.hidden, columns, unquantised(task.work.formats.precision)};
  return {"head", model.hidden, columns, task.precision(model.head), task.weights(model.head)};
}

/// Megatron-LM's cross entropy by elementwise kernels: logits become fp32 and stay so; maximum,
/// difference, exponential, sum, quotient (core/tensor_parallel/cross_entropy.py).
std::vector<Kernel> loss_kernels(const RankWork& work, std::int64_t columns) {
  if (work.software->cross_entropy.value == Fusion::kFused)
    return {cross_entropy("loss", work.formats.precision, work.tokens(), columns)};
  const double bytes = activation_bytes(work.formats.precision);
  const auto pass = [&](const char* name, StreamCost cost,
                        KernelClass kind = KernelClass::kElementwise) {
    return stream(name, kind, work.tokens(), columns, cost);
  };
  return {pass("loss widening", {bytes, 4, 0}),
          pass("loss row maximum", {4, 0, 1}),
          pass("loss difference", {4, 4, 1}),
          pass("loss exponential", {4, 4, 1}, KernelClass::kSoftmax),
          pass("loss row sum", {4, 0, 1}),
          pass("loss quotient", {4, 4, 1})};
}

std::vector<Kernel> loss_gradient_kernels(const RankWork& work, std::int64_t columns) {
  const double bytes = activation_bytes(work.formats.precision);
  if (work.software->cross_entropy.value == Fusion::kFused)
    return {stream("loss backward", KernelClass::kSoftmax, work.tokens(), columns, {4, bytes, 2})};
  return {elementwise("loss backward", work.tokens(), columns, {4, 4, 1}),
          elementwise("loss narrowing", work.tokens(), columns, {4, bytes, 0})};
}

/// Whether the gradient of the loss is computed from the logits. Else it gets memory of its own.
bool reads_logits_again(const RankWork& work) {
  const LossTensors tensors = work.software->loss_tensors.value;
  return tensors == LossTensors::kInPlace || tensors == LossTensors::kCompiled;
}

bool shifts_logits(const RankWork& work) {
  return work.software->loss_tensors.value == LossTensors::kShifted;
}

/// The gradient of the logits.
void loss_backward(StepList& steps, const LayerTask& task) {
  for (const Kernel& kernel : loss_gradient_kernels(task.work, head_of(task).out))
    steps.then(kernel);
  makes(steps, task, {probability_gradients, logit_exponentials, wide_gradients});
  frees(steps, task, {logit_exponentials, loss_probabilities, probability_gradients});
  if (!shifts_logits(task.work)) frees(steps, task, {wide_gradients});
  if (task.work.software->loss_tensors.value != LossTensors::kCompiled) return;
  makes(steps, task, {compiled_gradients});
  frees(steps, task, {logits});
}

void project_head(StepList& steps, const LayerTask& task) {
  column_forward(steps, task.work, {head_of(task)}, task.model.hidden);
}

/// Frees the gradient of the logits. Beside adapters the head may be trained whole.
void project_head_backward(StepList& steps, const LayerTask& task) {
  RankWork work = task.work;
  if (work.lora.trains_head) work.lora.trains = false;
  column_backward(steps, work, {head_of(task)}, task.model.hidden);
  if (work.software->loss_tensors.value == LossTensors::kCompiled) {
    frees(steps, task, {compiled_gradients});
    return;
  }
  // In their place, or beside half of the wide ones as long as these are there. That of a slice is
  // narrowed and fills one for all tokens.
  if (shifts_logits(work)) makes(steps, task, {shifted_gradients});
  if (!reads_logits_again(work)) makes(steps, task, {logits});
  if (shifts_logits(work)) frees(steps, task, {wide_gradients, shifted_gradients});
  frees(steps, task, {logits});
}

/// Softmax over a vocabulary that is split over tp: maximum, target logit and sum are reduced, one
/// fp32 a token each (Shoeybi et al. 2019, section 3).
void loss_forward(StepList& steps, const LayerTask& task) {
  makes(steps, task, {logits});
  for (const Kernel& kernel : loss_kernels(task.work, head_of(task).out)) steps.then(kernel);
  makes(steps, task, {shifted_logits, wide_logits, logit_differences, loss_probabilities});
  frees(steps, task, {logit_differences, wide_logits, shifted_logits});
  if (!reads_logits_again(task.work)) frees(steps, task, {logits});
  if (task.work.split.tp == 1) return;
  for (const char* name : {"loss maximum", "loss target", "loss sum"})
    steps.then(LayerCollective{name, TransferKind::kAllReduce, Scope::kTensor,
                               Bytes(4 * real(task.work.tokens()))});
}

void gather_over_ranks(StepList& steps, const LayerTask& task, const char* name,
                       std::int64_t columns) {
  steps.then(LayerCollective{name, TransferKind::kAllGather, Scope::kTensor,
                             Bytes(real(task.work.logit_rows()) * real(columns) * task.bytes())});
}

/// Inference: logits are gathered, then one token is chosen for every row.
void choose_tokens(StepList& steps, const LayerTask& task) {
  const std::int64_t rows = task.work.logit_rows();
  if (task.work.split.sp)
    gather_over_ranks(steps, task, "head input all-gather", task.model.hidden);
  steps.then(launched_product(task.work, head_of(task), rows));
  if (task.work.split.tp > 1)
    gather_over_ranks(steps, task, "logits all-gather", task.model.vocabulary);
  steps.then(stream("sample", KernelClass::kSoftmax, rows, task.model.vocabulary,
                    {task.bytes(), 0, vector_cost::kSoftmax}));
}

/// The norm that is not one of a layer (BERT's stands behind the embeddings), and what pools the
/// first token of each sequence, whole on every rank.
void end_encoder(StepList& steps, const LayerTask& task) {
  steps.then(norm_forward("encoder norm", task, task.work.row_tokens()));
  if (!task.model.pooler) return;
  const std::int64_t sequences = task.work.logit_rows(), hidden = task.model.hidden;
  const Precision precision = unquantised(task.work.formats.precision);
  const double bytes = activation_bytes(precision);
  steps.then(gemm("pooler", precision, {sequences, hidden, hidden}));
  steps.then(elementwise("pooler function", sequences, hidden, {bytes, bytes, 1}));
}

std::vector<LayerOp> head_ops(const LayerTask& task) {
  std::vector<LayerOp> all;
  const std::int64_t rows = task.work.logit_rows();
  if (rows == 0) return all;  // pieces of prompts alone: nobody gets a token
  if (is_encoder_alone(task.model)) return {{end_encoder}};
  append(all, GraphPart::kOther, {residual_end(task)});
  if (task.model.final_norm) {
    LayerOp norm = norm_op("final norm", task, PastBlock::kNothing);
    norm.forward = kernels({norm_forward("final norm", task, rows)});
    append(all, GraphPart::kOther, {std::move(norm)});
  }
  if (task.work.trains())
    append(all, GraphPart::kOther,
           {{project_head, project_head_backward, {head_input}}, {loss_forward, loss_backward}});
  else
    append(all, GraphPart::kOther, {{choose_tokens}});
  return all;
}

}  // namespace

StepList head_forward(const LlmConfig& model, const RankWork& work) {
  const LayerConfig none;
  const LayerTask task{model, none, work};
  return forward_pass(task, head_ops(task));
}

StepList head_backward(const LlmConfig& model, const RankWork& work) {
  const LayerConfig none;
  const LayerTask task{model, none, work};
  return backward_pass(task, head_ops(task));
}

}  // namespace orrery
