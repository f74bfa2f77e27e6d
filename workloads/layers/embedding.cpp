// SPDX-License-Identifier: Apache-2.0
#include <utility>

#include "workloads/base/real.h"
#include "workloads/layers/layers.h"
#include "workloads/layers/parts/layer_op.h"
#include "workloads/ops/kernels.h"
#include "workloads/software/training_software.h"

namespace orrery {
namespace {

/// The gradient of the embedding is a whole table, cleared, filled where tokens are, and added up:
/// to that of earlier micro-batches, or where there is none to that of the head that it is tied to.
/// A copy that is trained beside adapters is tied to nothing.
Kernel table_addition(const LlmConfig& model, const RankWork& work) {
  const GradientBuffer buffer = gradient_buffer(work);
  StreamCost cost{buffer.element + buffer.bytes, buffer.element + buffer.bytes, 1};
  if (buffer.fresh)
    cost = model.tied_embeddings && !work.lora.trains
               ? StreamCost{2 * buffer.element, 2 * buffer.element, 1}
               : StreamCost{0, buffer.element, 0};
  return elementwise("embedding gradient addition",
                     (model.vocabulary + work.split.tp - 1) / work.split.tp, model.hidden, cost);
}

Tensor encoder_norm_input(const LayerTask& task) {
  return {"encoder norm input",
          Bytes(real(task.work.row_tokens() * task.model.hidden) * task.bytes()),
          TensorRole::kActivation};
}

std::vector<LayerOp> encoder_end(const LayerTask& task) {
  LayerOp norm = norm_op("encoder norm", task, PastBlock::kNothing, {encoder_norm_input});
  norm.part = GraphPart::kOther;
  return {std::move(norm)};
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
  if (work.split.sp)
    gradient = steps.for_weights(tensor_collective("embedding gradient all-gather",
                                                   TransferKind::kAllGather, work, model.hidden),
                                 {});
  const bool positions = model.positions > 0 && !work.lora.trains;  // else frozen
  const double tables = 1.0 / work.split.tp + (positions ? 1 : 0);
  const std::size_t rows =
      steps.for_weights(stream("embedding backward", KernelClass::kEmbedding, work.tokens(),
                               model.hidden, {bytes + tables * bytes, tables * bytes, tables}),
                        {gradient});
  steps.for_weights(table_addition(model, work), {rows});
  return steps;
}

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

}  // namespace orrery
