// SPDX-License-Identifier: Apache-2.0
// Multi-token prediction (DeepSeek-V3, arXiv 2412.19437, section 2.2): the normed embedding of a
// later token and the normed hidden state are joined, projected to the model's width and go through
// a layer; embedding and head are those of the model. The projection is column-parallel and its
// output gathered, as in Megatron-Core (megatron/core/transformer/multi_token_prediction.py).
#include "workloads/base/real.h"
#include "workloads/layers/layers.h"
#include "workloads/layers/parts/layer_parts.h"
#include "workloads/layers/parts/linear.h"
#include "workloads/ops/kernels.h"

namespace orrery {
namespace {

Linear projection(const LlmConfig& model, const RankWork& work) {
  return {"mtp projection", 2 * model.hidden, model.hidden / work.split.tp, work.formats.precision};
}

Tensor rows_of(const char* name, const RankWork& work, std::int64_t width) {
  return {name, Bytes(real(work.row_tokens() * width) * activation_bytes(work.formats.precision)),
          TensorRole::kActivation};
}
Tensor embedding_norm_input(const LlmConfig& model, const RankWork& work) {
  return rows_of("mtp embedding norm input", work, model.hidden);
}
Tensor hidden_norm_input(const LlmConfig& model, const RankWork& work) {
  return rows_of("mtp hidden norm input", work, model.hidden);
}
Tensor projection_input(const LlmConfig& model, const RankWork& work) {
  return rows_of("mtp projection input", work, 2 * model.hidden);
}

LayerCollective gather(const std::string& name, const LlmConfig& model, const RankWork& work) {
  return tensor_collective(name, TransferKind::kAllGather, work, model.hidden);
}

}  // namespace

StepList module_forward(const LlmConfig& model, const RankWork& work) {
  const LayerConfig& layer = model.module_layer();
  const LayerTask task{model, layer, work};
  const double bytes = activation_bytes(work.formats.precision);
  const std::int64_t rows = work.row_tokens();
  StepList steps;
  steps.tell_tensors(work.passes.tensors);
  steps.append(embedding_forward(model, work));
  steps.then(norm_forward("mtp embedding norm", task, rows));
  steps.tell(TensorEvent::What::kMakes, embedding_norm_input(model, work));
  steps.then(norm_forward("mtp hidden norm", task, rows));
  steps.tell(TensorEvent::What::kMakes, hidden_norm_input(model, work));
  steps.then(
      stream("mtp join", KernelClass::kElementwise, rows, 2 * model.hidden, {bytes, bytes, 0}));
  steps.tell(TensorEvent::What::kMakes, projection_input(model, work));
  column_forward(steps, work, {projection(model, work)}, 2 * model.hidden);
  if (work.split.tp > 1) steps.then(gather("mtp projection all-gather", model, work));
  steps.append(layer_forward(model, layer, work));
  return steps;
}

StepList module_backward(const LlmConfig& model, const RankWork& work) {
  const LayerConfig& layer = model.module_layer();
  const LayerTask task{model, layer, work};
  const std::int64_t rows = work.row_tokens();
  StepList steps;
  steps.tell_tensors(work.passes.tensors);
  steps.append(layer_backward(model, layer, work));
  // Every rank has the gradient of its columns of all tokens.
  if (work.split.sp) steps.then(gather("mtp gradient all-gather", model, work));
  column_backward(steps, work, {projection(model, work)}, 2 * model.hidden);
  steps.tell(TensorEvent::What::kFrees, projection_input(model, work));
  norm_backward(steps, "mtp hidden norm backward", task, rows, PastBlock::kGradient);
  steps.tell(TensorEvent::What::kFrees, hidden_norm_input(model, work));
  norm_backward(steps, "mtp embedding norm backward", task, rows, PastBlock::kNothing);
  steps.tell(TensorEvent::What::kFrees, embedding_norm_input(model, work));
  steps.append(embedding_backward(model, work));
  return steps;
}

}  // namespace orrery
