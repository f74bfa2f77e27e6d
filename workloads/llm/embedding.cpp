// SPDX-License-Identifier: Apache-2.0
#include "workloads/llm/kept_tensors.h"
#include "workloads/llm/kernels.h"
#include "workloads/llm/layer_parts.h"
#include "workloads/llm/layers.h"
#include "workloads/llm/linear.h"
#include "workloads/llm/real.h"

namespace orrery {
namespace {

/// The head is not quantised. The vocabulary is padded to a multiple of tp, as in Megatron-LM.
Linear head_of(const LlmConfig& model, const LayerWork& work) {
  return {"head", model.hidden, (model.vocabulary + work.tp - 1) / work.tp,
          unquantised(work.precision)};
}

/// Softmax over a vocabulary that is split over tp: maximum, target logit and sum are reduced, one
/// fp32 a token each (Shoeybi et al. 2019, section 3).
void loss_forward(StepList& steps, const LlmConfig& model, const LayerWork& work) {
  steps.tell(TensorEvent::What::kMakes, kept::logits(model, work));
  steps.then(cross_entropy("loss", work.precision, work.tokens(), head_of(model, work).out));
  steps.tell(TensorEvent::What::kMakes, kept::loss_probabilities(model, work));
  if (work.tp == 1) return;
  for (const char* name : {"loss maximum", "loss target", "loss sum"}) {
    LayerCollective reduce;
    reduce.name = name;
    reduce.bytes = Bytes(4 * real(work.tokens()));
    steps.then(reduce);
  }
}

/// Logits are gathered, then one token is chosen for every row.
void choose_token(StepList& steps, const LlmConfig& model, const LayerWork& work,
                  std::int64_t rows) {
  const double bytes = activation_bytes(work.precision);
  if (work.tp > 1) {
    LayerCollective gather;
    gather.name = "logits all-gather";
    gather.kind = TransferKind::kAllGather;
    gather.bytes = Bytes(real(rows) * real(model.vocabulary) * bytes);
    steps.then(gather);
  }
  steps.then(stream("sample", KernelClass::kSoftmax, rows, model.vocabulary,
                    {bytes, 0, vector_cost::kSoftmax}));
}

}  // namespace

StepList embedding_forward(const LlmConfig& model, const LayerWork& work) {
  const double bytes = activation_bytes(work.precision);
  StepList steps;
  // A token's row is on one of the tp ranks; all write their part of the sum.
  const double positions = model.positions > 0 ? bytes : 0;
  steps.then(stream("embedding", KernelClass::kEmbedding, work.tokens(), model.hidden,
                    {bytes / work.tp + positions, bytes, positions > 0 ? 1.0 : 0.0}));
  if (work.tp > 1) {
    const auto kind = work.sp ? TransferKind::kReduceScatter : TransferKind::kAllReduce;
    steps.then(tensor_collective("embedding reduce", kind, work, model.hidden));
  }
  return steps;
}

StepList embedding_backward(const LlmConfig& model, const LayerWork& work) {
  const double bytes = activation_bytes(work.precision);
  StepList steps;
  std::size_t gradient = StepList::kStart;
  if (work.sp) {
    gradient = steps.for_weights(tensor_collective("embedding gradient all-gather",
                                                   TransferKind::kAllGather, work, model.hidden),
                                 {});
  }
  const double tables = 1.0 / work.tp + (model.positions > 0 ? 1 : 0);
  steps.for_weights(stream("embedding backward", KernelClass::kEmbedding, work.tokens(),
                           model.hidden, {bytes + tables * bytes, tables * bytes, tables}),
                    {gradient});
  return steps;
}

StepList head_forward(const LlmConfig& model, const LayerWork& work) {
  const LayerConfig none;
  const bool training = work.phase == Phase::kTraining;
  const std::int64_t rows = work.logit_rows();
  StepList steps;
  if (rows == 0) return steps;  // pieces of prompts alone: nobody gets a token
  steps.tell_tensors(work.tensors);
  if (model.final_norm) steps.then(norm_forward("final norm", {model, none, work}, rows));
  const Linear head = head_of(model, work);
  if (training) {
    column_forward(steps, work, {head}, model.hidden);
    loss_forward(steps, model, work);
  } else {
    if (work.sp) {
      LayerCollective gather;
      gather.name = "head input all-gather";
      gather.kind = TransferKind::kAllGather;
      gather.bytes = Bytes(real(rows) * real(model.hidden) * activation_bytes(work.precision));
      steps.then(gather);
    }
    steps.then(gemm(head.name, head.precision, {rows, head.out, head.in}));
    choose_token(steps, model, work, rows);
  }
  return steps;
}

StepList head_backward(const LlmConfig& model, const LayerWork& work) {
  const LayerConfig none;
  const double bytes = activation_bytes(work.precision);
  const Linear head = head_of(model, work);
  StepList steps;
  steps.tell_tensors(work.tensors);
  steps.then(
      stream("loss backward", KernelClass::kSoftmax, work.tokens(), head.out, {4, bytes, 2}));
  steps.tell(TensorEvent::What::kFrees, kept::loss_probabilities(model, work));
  column_backward(steps, work, {head}, model.hidden);
  // Their gradient is in their place.
  steps.tell(TensorEvent::What::kFrees, kept::logits(model, work));
  if (model.final_norm) {
    steps.then(norm_backward("final norm backward", {model, none, work}, work.row_tokens()));
  }
  return steps;
}

}  // namespace orrery
