// SPDX-License-Identifier: Apache-2.0
#include <utility>

#include "workloads/layers/parts/kept_tensors.h"
#include "workloads/layers/parts/layer_parts.h"
#include "workloads/layers/parts/linear.h"
#include "workloads/ops/kernels.h"

namespace orrery {
namespace {

Bias bias_of(const LayerTask& task) { return task.model.mlp.bias ? Bias::kPassedOn : Bias::kNone; }

Linear up_of(const LayerTask& task) {
  const MlpConfig mlp = task.mlp();
  const std::int64_t width = mlp.intermediate / task.work.split.tp;
  Linear up{mlp.gated ? "gate-up" : "up", task.model.hidden, width * (mlp.gated ? 2 : 1),
            task.precision(task.layer.feed), task.weights(task.layer.feed)};
  up.adapted = AdaptedMatrix{LoraModule::kGateUpProj, mlp.gated ? 2 : 1};
  up.bias = bias_of(task);
  up.split = MatrixSplit::kColumns;
  if (mlp.gated) up.parts.push_back({width, LoraModule::kGateProj});
  up.parts.push_back({width, LoraModule::kUpProj});
  return up;
}

Linear down_of(const LayerTask& task) {
  Linear down{"down", task.mlp().intermediate / task.work.split.tp, task.model.hidden,
              task.precision(task.layer.feed), task.weights(task.layer.feed)};
  down.adapted = AdaptedMatrix{LoraModule::kDownProj};
  down.bias = bias_of(task);
  down.split = MatrixSplit::kRows;
  return down;
}

}  // namespace

std::vector<Linear> mlp_linears(const LayerTask& task) { return {up_of(task), down_of(task)}; }

void mlp_inner_forward(StepList& steps, const LayerTask& task) {
  const RankWork& w = task.work;
  column_forward(steps, w, {up_of(task)}, task.model.hidden);
  makes(steps, task, {kept::mlp_input});
  Kernel function = activation_forward("activation", task, w.tokens(), down_of(task).in);
  if (w.batch.phase != Phase::kTraining)
    function.launches = w.launches(task.model.mlp.gated ? 2 : 1);
  steps.then(std::move(function));
  makes(steps, task, {kept::mlp_function_input, kept::down_input});
}

void mlp_forward(StepList& steps, const LayerTask& task) {
  const RankWork& w = task.work;
  mlp_inner_forward(steps, task);
  row_forward(steps, w, down_of(task), w.split.sp ? RowOutput::kScattered : RowOutput::kReduced);
  makes(steps, task, {kept::down_output});
}

void mlp_backward(StepList& steps, const LayerTask& task) {
  const RankWork& w = task.work;
  const bool norm = w.recomputes(RecomputeModule::kLayernorm);
  const bool whole = w.recomputes(RecomputeModule::kMlp);
  if (whole) {
    if (norm) steps.then(norm_forward("mlp norm", task, w.row_tokens()));
    mlp_forward(steps, task.again());
  }
  row_backward(steps, w, down_of(task));
  frees(steps, task, {kept::down_input, kept::down_output});
  steps.then(activation_backward("activation backward", task, w.tokens(), down_of(task).in));
  frees(steps, task, {kept::mlp_function_input});
  if (norm && !whole) {
    steps.then(norm_forward("mlp norm", task, w.row_tokens()));
    makes(steps, task.again(), {kept::mlp_input});
  }
  column_backward(steps, w, {up_of(task)}, task.model.hidden);
  frees(steps, task, {kept::mlp_input});
}

namespace {

/// Whether the function of a gate and the product with it are operators of their own.
bool gates_apart(const LayerTask& task) {
  return task.work.batch.phase == Phase::kTraining && task.model.mlp.gated &&
         task.work.software->gated_activation.value == Fusion::kApart;
}

}  // namespace

Kernel activation_forward(const std::string& name, const LayerTask& task, std::int64_t rows,
                          std::int64_t width) {
  const Precision written = task.work.function_precision(task.precision(task.layer.feed));
  Kernel kernel = activation(name, written, rows, width, task.model.mlp.gated);
  return compiled(gate_apart(task, std::move(kernel)), task.work);
}

Kernel gate_apart(const LayerTask& task, Kernel function) {
  if (!gates_apart(task)) return function;
  // A function reads the gate and writes what the product reads with the other half.
  function.written += function.read / 2.0;
  function.read += function.read / 2.0;
  function.launches = 2;
  return function;
}

Kernel activation_backward(const std::string& name, const LayerTask& task, std::int64_t rows,
                           std::int64_t width) {
  const double bytes = activation_bytes(task.work.formats.precision);
  const double flops = 2 * vector_cost::kSilu + 4;
  StreamCost cost{2 * bytes, bytes, 2 * vector_cost::kGelu};
  if (task.model.mlp.gated) cost = {3 * bytes, 2 * bytes, flops};
  // A gradient of each factor and that of the function: three kernels that read two tensors each.
  if (gates_apart(task)) cost = {6 * bytes, 3 * bytes, flops};
  Kernel kernel = stream(name, KernelClass::kElementwise, rows, width, cost);
  if (gates_apart(task)) kernel.launches = 3;
  return compiled(std::move(kernel), task.work);
}

Kernel compiled(Kernel kernel, const RankWork& work) {
  if (work.batch.phase == Phase::kTraining) kernel.rate *= work.software->compiled();
  return kernel;
}

}  // namespace orrery
