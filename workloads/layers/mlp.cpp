// SPDX-License-Identifier: Apache-2.0
#include <utility>

#include "workloads/layers/parts/layer_op.h"
#include "workloads/ops/kernels.h"
#include "workloads/software/training_software.h"

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

Linear mlp_down_of(const LayerTask& task) {
  Linear down{"down", task.mlp().intermediate / task.work.split.tp, task.model.hidden,
              task.precision(task.layer.feed), task.weights(task.layer.feed)};
  down.adapted = AdaptedMatrix{LoraModule::kDownProj};
  down.bias = bias_of(task);
  down.split = MatrixSplit::kRows;
  return down;
}

Kernel mlp_function(const LayerTask& task) {
  Kernel function =
      activation_forward("activation", task, task.work.tokens(), mlp_down_of(task).in);
  if (!task.work.trains()) function.launches = task.work.launches(task.model.mlp.gated ? 2 : 1);
  return function;
}

/// The norm is computed again in front of the whole MLP, or of its first gradient.
void up_backward(StepList& steps, const LayerTask& task) {
  if (!task.work.recomputes(RecomputeModule::kMlp))
    norm_again(steps, task, "mlp norm", kept::mlp_input);
  column_backward(steps, task.work, {up_of(task)}, task.model.hidden);
}

/// Whether the function of a gate and the product with it are operators of their own.
bool gates_apart(const LayerTask& task) {
  return task.work.trains() && task.model.mlp.gated &&
         task.work.software->gated_activation.value == Fusion::kApart;
}

}  // namespace

PartWeights mlp_weights(const LayerTask& task) { return {{up_of(task), mlp_down_of(task)}}; }

std::vector<LayerOp> mlp_inner_ops(const LayerTask& task) {
  LayerOp up = column_op({up_of(task)}, task.model.hidden);
  up.gradient = up_backward;
  up.keeps = {kept::mlp_input};
  return {std::move(up),
          {kernels({mlp_function(task)}),
           kernels({activation_backward("activation backward", task, task.work.tokens(),
                                        mlp_down_of(task).in)}),
           {kept::mlp_function_input},
           {kept::down_input}}};
}

std::vector<LayerOp> mlp_ops(const LayerTask& task) {
  std::vector<LayerOp> all = mlp_inner_ops(task);
  all.push_back(row_op(mlp_down_of(task), {kept::down_input, kept::down_output},
                       task.work.split.sp ? RowOutput::kScattered : RowOutput::kReduced));
  all.back().makes = {kept::down_output};
  all.push_back(again_op(task, RecomputeModule::kMlp, all));
  return all;
}

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
  const double bytes = task.bytes();
  const double flops = 2 * vector_cost::kSilu + 4;
  StreamCost cost{2 * bytes, bytes, 2 * vector_cost::kGelu};
  if (task.model.mlp.gated) cost = {3 * bytes, 2 * bytes, flops};
  // A gradient of each factor and that of the function: three kernels that read two tensors each.
  if (gates_apart(task)) cost = {6 * bytes, 3 * bytes, flops};
  Kernel kernel = elementwise(name, rows, width, cost);
  if (gates_apart(task)) kernel.launches = 3;
  return compiled(std::move(kernel), task.work);
}

Kernel compiled(Kernel kernel, const RankWork& work) {
  if (work.trains()) kernel.rate *= work.software->compiled();
  return kernel;
}

}  // namespace orrery
