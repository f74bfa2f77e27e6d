// SPDX-License-Identifier: Apache-2.0
#include "workloads/llm/residuals.h"

#include "workloads/llm/kernels.h"
#include "workloads/llm/real.h"

namespace orrery {

void residual_forward(StepList& steps, const std::string& name, const LayerTask& task,
                      std::int64_t rows, KeptTensor mask) {
  if (task.work.phase != Phase::kTraining) return;
  const double bytes = activation_bytes(task.work.precision);
  const bool dropout = task.work.dropout;
  steps.then(
      stream(name, KernelClass::kElementwise, rows, task.model.hidden,
             {2 * bytes, bytes + (dropout ? 1 : 0), 1 + (dropout ? vector_cost::kDropout : 0)}));
  makes(steps, task, {mask});
}

void residual_backward(StepList& steps, const std::string& name, const LayerTask& task,
                       KeptTensor mask) {
  if (!task.work.dropout) return;
  const double bytes = activation_bytes(task.work.precision);
  steps.then(stream(name, KernelClass::kElementwise, task.work.row_tokens(), task.model.hidden,
                    {bytes + 1, bytes, 1}));
  frees(steps, task, {mask});
}

void hyper_connection_in(StepList& steps, const LayerTask& task) {
  const std::int64_t streams = task.model.residual_streams, rows = task.work.row_tokens();
  if (streams == 1) return;
  const double bytes = activation_bytes(task.work.precision), all = real(streams);
  steps.then(gemm("hyper connection weights", unquantised(task.work.precision),
                  {rows, streams * (2 + streams), streams * task.model.hidden}));
  Kernel mixture = stream("hyper connection in", KernelClass::kElementwise, rows, task.model.hidden,
                          {all * bytes, bytes, 2 * all});
  // Rows and columns in turn: a sum and a quotient for each weight.
  mixture.vector_flops += Flops(real(rows * task.model.sinkhorn_steps) * 4 * all * all);
  steps.then(mixture);
}

void hyper_connection_out(StepList& steps, const LayerTask& task, std::int64_t rows) {
  const double streams = real(task.model.residual_streams);
  if (task.model.residual_streams == 1) return;
  const double bytes = activation_bytes(task.work.precision);
  steps.then(stream("hyper connection out", KernelClass::kElementwise, rows, task.model.hidden,
                    {(1 + streams) * bytes, streams * bytes, 2 * streams * (1 + streams)}));
}

void residual_mixture(StepList& steps, const LayerTask& task) {
  if (task.layer.sources == 0) return;
  const double bytes = activation_bytes(task.work.precision), sources = real(task.layer.sources);
  steps.then(stream("residual mixture", KernelClass::kElementwise, task.work.row_tokens(),
                    task.model.hidden,
                    {sources * bytes, bytes, sources * (vector_cost::kRmsNorm + 4)}));
}

}  // namespace orrery
