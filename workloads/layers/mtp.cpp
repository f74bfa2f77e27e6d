// SPDX-License-Identifier: Apache-2.0
// Multi-token prediction (DeepSeek-V3, arXiv 2412.19437, section 2.2): the normed embedding of a
// later token and the normed hidden state are joined, projected to the model's width and go through
// a layer; embedding and head are those of the model. The projection is column-parallel and its
// output gathered, as in Megatron-Core (megatron/core/transformer/multi_token_prediction.py).
#include "workloads/base/real.h"
#include "workloads/layers/layers.h"
#include "workloads/layers/parts/layer_op.h"
#include "workloads/ops/kernels.h"

namespace orrery {
namespace {

Linear projection(const LayerTask& task) {
  const std::int64_t hidden = task.model.hidden;
  return {"mtp projection", 2 * hidden, hidden / task.work.split.tp, task.work.formats.precision};
}

Tensor rows_of(const char* name, const LayerTask& task, std::int64_t width) {
  return {name, Bytes(real(task.work.row_tokens() * width) * task.bytes()),
          TensorRole::kActivation};
}
Tensor mtp_embedding_norm_input(const LayerTask& task) {
  return rows_of("mtp embedding norm input", task, task.model.hidden);
}
Tensor hidden_norm_input(const LayerTask& task) {
  return rows_of("mtp hidden norm input", task, task.model.hidden);
}
Tensor projection_input(const LayerTask& task) {
  return rows_of("mtp projection input", task, 2 * task.model.hidden);
}

void gather(StepList& steps, const LayerTask& task, const char* name) {
  steps.then(tensor_collective(name, TransferKind::kAllGather, task.work, task.model.hidden));
}

void project_joined(StepList& steps, const LayerTask& task) {
  column_forward(steps, task.work, {projection(task)}, 2 * task.model.hidden);
  if (task.work.split.tp > 1) gather(steps, task, "mtp projection all-gather");
}

/// Every rank has the gradient of its columns of all tokens.
void project_joined_backward(StepList& steps, const LayerTask& task) {
  if (task.work.split.sp) gather(steps, task, "mtp gradient all-gather");
  column_backward(steps, task.work, {projection(task)}, 2 * task.model.hidden);
}

/// From hidden states and embeddings to the input of the layer.
std::vector<LayerOp> joined_ops(const LayerTask& task) {
  const double bytes = task.bytes();
  return {norm_op("mtp embedding norm", task, PastBlock::kNothing, {mtp_embedding_norm_input}),
          norm_op("mtp hidden norm", task, PastBlock::kGradient, {hidden_norm_input}),
          {kernels({elementwise("mtp join", task.work.row_tokens(), 2 * task.model.hidden,
                                {bytes, bytes, 0})}),
           {},
           {},
           {projection_input}},
          {project_joined, project_joined_backward, {}, {}, {projection_input}}};
}

}  // namespace

StepList module_forward(const LlmConfig& model, const RankWork& work) {
  const LayerTask task{model, model.module_layer(), work};
  StepList steps;
  steps.append(embedding_forward(model, work));
  steps.tell_tensors(work.passes.tensors);
  run_forward(steps, task, joined_ops(task));
  steps.append(layer_forward(model, task.layer, work));
  return steps;
}

StepList module_backward(const LlmConfig& model, const RankWork& work) {
  const LayerTask task{model, model.module_layer(), work};
  StepList steps;
  steps.append(layer_backward(model, task.layer, work));
  steps.tell_tensors(work.passes.tensors);
  run_backward(steps, task, joined_ops(task));
  steps.append(embedding_backward(model, work));
  return steps;
}

}  // namespace orrery
