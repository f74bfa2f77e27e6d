// SPDX-License-Identifier: Apache-2.0
#include <utility>

#include "workloads/base/real.h"
#include "workloads/layers/layers.h"
#include "workloads/layers/parts/kept_tensors.h"
#include "workloads/layers/parts/layer_op.h"
#include "workloads/layers/parts/layer_parts.h"
#include "workloads/layers/parts/linear.h"
#include "workloads/layers/parts/residuals.h"
#include "workloads/models/encoder_alone.h"
#include "workloads/ops/kernels.h"

namespace orrery {
namespace {

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
  return {
      stream("loss backward", KernelClass::kElementwise, work.tokens(), columns, {4, 4, 1}),
      stream("loss narrowing", KernelClass::kElementwise, work.tokens(), columns, {4, bytes, 0})};
}

/// The gradient of the embedding is a whole table, cleared, filled where tokens are, and added up:
/// to that of earlier micro-batches, or where there is none to that of the head that it is tied to.
/// A copy that is trained beside adapters is tied to nothing.
Kernel table_addition(const LlmConfig& model, const RankWork& work) {
  const LayerConfig none;
  const GradientBuffer buffer = gradient_buffer(work);
  StreamCost cost{buffer.element + buffer.bytes, buffer.element + buffer.bytes, 1};
  if (buffer.fresh) {
    cost = model.tied_embeddings && !work.lora.trains
               ? StreamCost{2 * buffer.element, 2 * buffer.element, 1}
               : StreamCost{0, buffer.element, 0};
  }
  return stream("embedding gradient addition", KernelClass::kElementwise,
                head_of({model, none, work}).out, model.hidden, cost);
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
  makes(steps, task, {kept::probability_gradients, kept::logit_exponentials, kept::wide_gradients});
  frees(steps, task,
        {kept::logit_exponentials, kept::loss_probabilities, kept::probability_gradients});
  if (!shifts_logits(task.work)) frees(steps, task, {kept::wide_gradients});
  if (task.work.software->loss_tensors.value != LossTensors::kCompiled) return;
  makes(steps, task, {kept::compiled_gradients});
  frees(steps, task, {kept::logits});
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
    frees(steps, task, {kept::compiled_gradients});
    return;
  }
  // In their place, or beside half of the wide ones as long as these are there. That of a slice is
  // narrowed and fills one for all tokens.
  if (shifts_logits(work)) makes(steps, task, {kept::shifted_gradients});
  if (!reads_logits_again(work)) makes(steps, task, {kept::logits});
  if (shifts_logits(work)) frees(steps, task, {kept::wide_gradients, kept::shifted_gradients});
  frees(steps, task, {kept::logits});
}

/// Softmax over a vocabulary that is split over tp: maximum, target logit and sum are reduced, one
/// fp32 a token each (Shoeybi et al. 2019, section 3).
void loss_forward(StepList& steps, const LayerTask& task) {
  makes(steps, task, {kept::logits});
  for (const Kernel& kernel : loss_kernels(task.work, head_of(task).out)) steps.then(kernel);
  makes(
      steps, task,
      {kept::shifted_logits, kept::wide_logits, kept::logit_differences, kept::loss_probabilities});
  frees(steps, task, {kept::logit_differences, kept::wide_logits, kept::shifted_logits});
  if (!reads_logits_again(task.work)) frees(steps, task, {kept::logits});
  if (task.work.split.tp == 1) return;
  for (const char* name : {"loss maximum", "loss target", "loss sum"}) {
    LayerCollective reduce;
    reduce.name = name;
    reduce.bytes = Bytes(4 * real(task.work.tokens()));
    steps.then(reduce);
  }
}

void gather_over_ranks(StepList& steps, const LayerTask& task, const char* name,
                       std::int64_t columns) {
  LayerCollective gather;
  gather.name = name;
  gather.kind = TransferKind::kAllGather;
  gather.bytes = Bytes(real(task.work.logit_rows()) * real(columns) * task.bytes());
  steps.then(gather);
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
  steps.then(
      stream("pooler function", KernelClass::kElementwise, sequences, hidden, {bytes, bytes, 1}));
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
    append(
        all, GraphPart::kOther,
        {{project_head, project_head_backward, {kept::head_input}}, {loss_forward, loss_backward}});
  else
    append(all, GraphPart::kOther, {{choose_tokens}});
  return all;
}

}  // namespace

StepList embedding_forward(const LlmConfig& model, const RankWork& work) {
  const double bytes = activation_bytes(work.formats.precision);
  StepList steps;
  if (work.trains()) steps.issued_in(work.software->host_time(GraphPart::kOther));
  // A token's row is on one of the tp ranks; all write their part of the sum.
  const int others = (model.positions > 0 ? 1 : 0) + (model.segments > 0 ? 1 : 0);
  steps.then(stream("embedding", KernelClass::kEmbedding, work.tokens(), model.hidden,
                    {bytes / work.split.tp + others * bytes, bytes, static_cast<double>(others)}));
  if (work.split.tp > 1) {
    const auto kind = work.split.sp ? TransferKind::kReduceScatter : TransferKind::kAllReduce;
    steps.then(tensor_collective("embedding reduce", kind, work, model.hidden));
  }
  return steps;
}

StepList embedding_backward(const LlmConfig& model, const RankWork& work) {
  const double bytes = activation_bytes(work.formats.precision);
  StepList steps;
  if (work.lora.trains && !work.lora.trains_embedding) return steps;  // frozen
  if (work.trains()) steps.issued_in(work.software->host_time(GraphPart::kOther));
  std::size_t gradient = StepList::kStart;
  if (work.split.sp) {
    gradient = steps.for_weights(tensor_collective("embedding gradient all-gather",
                                                   TransferKind::kAllGather, work, model.hidden),
                                 {});
  }
  const bool positions = model.positions > 0 && !work.lora.trains;  // else frozen
  const double tables = 1.0 / work.split.tp + (positions ? 1 : 0);
  const std::size_t rows =
      steps.for_weights(stream("embedding backward", KernelClass::kEmbedding, work.tokens(),
                               model.hidden, {bytes + tables * bytes, tables * bytes, tables}),
                        {gradient});
  steps.for_weights(table_addition(model, work), {rows});
  return steps;
}

namespace {

std::vector<LayerOp> encoder_end(const LayerTask& task) {
  LayerOp norm = norm_op("encoder norm", task, PastBlock::kNothing, {kept::encoder_norm_input});
  norm.part = GraphPart::kOther;
  return {std::move(norm)};
}

}  // namespace

StepList encoder_end_forward(const LlmConfig& model, const RankWork& work) {
  const LayerConfig none;
  const RankWork of_encoder = encoder_work(work);
  const LayerTask task{model, none, of_encoder};
  return forward_pass(task, encoder_end(task));
}

StepList encoder_end_backward(const LlmConfig& model, const RankWork& work) {
  const LayerConfig none;
  const RankWork of_encoder = encoder_work(work);
  const LayerTask task{model, none, of_encoder};
  return backward_pass(task, encoder_end(task));
}

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
