// SPDX-License-Identifier: Apache-2.0
#include "workloads/base/real.h"
#include "workloads/layers/layers.h"
#include "workloads/layers/parts/kept_tensors.h"
#include "workloads/layers/parts/layer_parts.h"
#include "workloads/layers/parts/linear.h"
#include "workloads/layers/parts/residuals.h"
#include "workloads/models/encoder_alone.h"
#include "workloads/ops/kernels.h"

namespace orrery {
namespace {

/// Checkpoints seldom quantise the head, and training never does. The vocabulary is padded to a
/// multiple of tp, as in Megatron-LM.
Linear head_of(const LlmConfig& model, const RankWork& work) {
  const std::int64_t columns = (model.vocabulary + work.split.tp - 1) / work.split.tp;
  if (work.trains() || model.head == StoredFormat::kSixteenBit)
    return {"head", model.hidden, columns, unquantised(work.formats.precision)};
  const LayerConfig none;
  const LayerTask task{model, none, work};
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
  const GradientBuffer buffer = gradient_buffer(work);
  StreamCost cost{buffer.element + buffer.bytes, buffer.element + buffer.bytes, 1};
  if (buffer.fresh) {
    cost = model.tied_embeddings && !work.lora.trains
               ? StreamCost{2 * buffer.element, 2 * buffer.element, 1}
               : StreamCost{0, buffer.element, 0};
  }
  return stream("embedding gradient addition", KernelClass::kElementwise, head_of(model, work).out,
                model.hidden, cost);
}

/// Whether the gradient of the loss is computed from the logits. Else it gets memory of its own.
bool reads_logits_again(const RankWork& work) {
  const LossTensors tensors = work.software->loss_tensors.value;
  return tensors == LossTensors::kInPlace || tensors == LossTensors::kCompiled;
}

bool shifts_logits(const RankWork& work) {
  return work.software->loss_tensors.value == LossTensors::kShifted;
}

/// Tensors of the gradient of the loss, up to that of the logits.
void tell_loss_gradients(StepList& steps, const LlmConfig& model, const RankWork& work) {
  using What = TensorEvent::What;
  steps.tell(What::kMakes, kept::probability_gradients(model, work));
  steps.tell(What::kMakes, kept::logit_exponentials(model, work));
  steps.tell(What::kMakes, kept::wide_gradients(model, work));
  steps.tell(What::kFrees, kept::logit_exponentials(model, work));
  steps.tell(What::kFrees, kept::loss_probabilities(model, work));
  steps.tell(What::kFrees, kept::probability_gradients(model, work));
  if (!shifts_logits(work)) steps.tell(What::kFrees, kept::wide_gradients(model, work));
  if (work.software->loss_tensors.value != LossTensors::kCompiled) return;
  steps.tell(What::kMakes, kept::compiled_gradients(model, work));
  steps.tell(What::kFrees, kept::logits(model, work));
}

/// The gradient of the logits, which the products of the head have read.
void tell_logit_gradients(StepList& steps, const LlmConfig& model, const RankWork& work) {
  using What = TensorEvent::What;
  if (work.software->loss_tensors.value == LossTensors::kCompiled) {
    steps.tell(What::kFrees, kept::compiled_gradients(model, work));
    return;
  }
  // In their place, or beside half of the wide ones as long as these are there. That of a slice is
  // narrowed and fills one for all tokens.
  if (shifts_logits(work)) steps.tell(What::kMakes, kept::shifted_gradients(model, work));
  if (!reads_logits_again(work)) steps.tell(What::kMakes, kept::logits(model, work));
  if (shifts_logits(work)) {
    steps.tell(What::kFrees, kept::wide_gradients(model, work));
    steps.tell(What::kFrees, kept::shifted_gradients(model, work));
  }
  steps.tell(What::kFrees, kept::logits(model, work));
}

/// Softmax over a vocabulary that is split over tp: maximum, target logit and sum are reduced, one
/// fp32 a token each (Shoeybi et al. 2019, section 3).
void loss_forward(StepList& steps, const LlmConfig& model, const RankWork& work) {
  using What = TensorEvent::What;
  steps.tell(What::kMakes, kept::logits(model, work));
  for (const Kernel& kernel : loss_kernels(work, head_of(model, work).out)) steps.then(kernel);
  steps.tell(What::kMakes, kept::shifted_logits(model, work));
  steps.tell(What::kMakes, kept::wide_logits(model, work));
  steps.tell(What::kMakes, kept::logit_differences(model, work));
  steps.tell(What::kMakes, kept::loss_probabilities(model, work));
  steps.tell(What::kFrees, kept::logit_differences(model, work));
  steps.tell(What::kFrees, kept::wide_logits(model, work));
  steps.tell(What::kFrees, kept::shifted_logits(model, work));
  if (!reads_logits_again(work)) steps.tell(What::kFrees, kept::logits(model, work));
  if (work.split.tp == 1) return;
  for (const char* name : {"loss maximum", "loss target", "loss sum"}) {
    LayerCollective reduce;
    reduce.name = name;
    reduce.bytes = Bytes(4 * real(work.tokens()));
    steps.then(reduce);
  }
}

/// Logits are gathered, then one token is chosen for every row.
void choose_token(StepList& steps, const LlmConfig& model, const RankWork& work,
                  std::int64_t rows) {
  const double bytes = activation_bytes(work.formats.precision);
  if (work.split.tp > 1) {
    LayerCollective gather;
    gather.name = "logits all-gather";
    gather.kind = TransferKind::kAllGather;
    gather.bytes = Bytes(real(rows) * real(model.vocabulary) * bytes);
    steps.then(gather);
  }
  steps.then(stream("sample", KernelClass::kSoftmax, rows, model.vocabulary,
                    {bytes, 0, vector_cost::kSoftmax}));
}

/// What gradients of the head see: beside adapters it may be trained whole.
RankWork of_head(RankWork work) {
  if (work.lora.trains_head) work.lora.trains = false;
  return work;
}

/// The norm that is not one of a layer (BERT's stands behind the embeddings), and what pools the
/// first token of each sequence, whole on every rank.
void end_encoder(StepList& steps, const LlmConfig& model, const RankWork& work) {
  const LayerConfig none;
  steps.then(norm_forward("encoder norm", {model, none, work}, work.row_tokens()));
  if (!model.pooler) return;
  const std::int64_t sequences = work.logit_rows();
  const Precision precision = unquantised(work.formats.precision);
  const double bytes = activation_bytes(precision);
  steps.then(gemm("pooler", precision, {sequences, model.hidden, model.hidden}));
  steps.then(stream("pooler function", KernelClass::kElementwise, sequences, model.hidden,
                    {bytes, bytes, 1}));
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

StepList head_forward(const LlmConfig& model, const RankWork& work) {
  const LayerConfig none;
  const bool training = work.trains();
  const std::int64_t rows = work.logit_rows();
  StepList steps;
  if (work.trains()) steps.issued_in(work.software->host_time(GraphPart::kOther));
  if (rows == 0) return steps;  // pieces of prompts alone: nobody gets a token
  if (is_encoder_alone(model)) {
    end_encoder(steps, model, work);
    return steps;
  }
  steps.tell_tensors(work.passes.tensors);
  residual_end(steps, model, work, rows);
  if (model.final_norm) steps.then(norm_forward("final norm", {model, none, work}, rows));
  const Linear head = head_of(model, work);
  if (training) {
    column_forward(steps, work, {head}, model.hidden);
    steps.tell(TensorEvent::What::kMakes, kept::head_input(model, work));
    loss_forward(steps, model, work);
  } else {
    if (work.split.sp) {
      LayerCollective gather;
      gather.name = "head input all-gather";
      gather.kind = TransferKind::kAllGather;
      gather.bytes =
          Bytes(real(rows) * real(model.hidden) * activation_bytes(work.formats.precision));
      steps.then(gather);
    }
    steps.then(launched_product(work, head, rows));
    choose_token(steps, model, work, rows);
  }
  return steps;
}

StepList head_backward(const LlmConfig& model, const RankWork& work) {
  const LayerConfig none;
  const Linear head = head_of(model, work);
  StepList steps;
  if (work.trains()) steps.issued_in(work.software->host_time(GraphPart::kOther));
  steps.tell_tensors(work.passes.tensors);
  for (const Kernel& kernel : loss_gradient_kernels(work, head.out)) steps.then(kernel);
  tell_loss_gradients(steps, model, work);
  column_backward(steps, of_head(work), {head}, model.hidden);
  tell_logit_gradients(steps, model, work);
  steps.tell(TensorEvent::What::kFrees, kept::head_input(model, work));
  if (model.final_norm) {
    norm_backward(steps, "final norm backward", {model, none, work}, work.row_tokens(),
                  PastBlock::kNothing);
  }
  residual_end_backward(steps, model, work);
  return steps;
}

}  // namespace orrery
