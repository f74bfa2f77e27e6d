// SPDX-License-Identifier: Apache-2.0
#include "workloads/layers/parts/residuals.h"

#include "workloads/base/real.h"
#include "workloads/ops/kernels.h"

namespace orrery {

void residual_forward(StepList& steps, const std::string& name, const LayerTask& task,
                      std::int64_t rows, KeptTensor mask) {
  if (!task.work.trains() || task.model.residual_streams > 1) return;
  const double bytes = task.bytes();
  const bool dropout = task.work.passes.dropout;
  const StreamCost cost{2 * bytes, bytes + (dropout ? 1 : 0),
                        1 + (dropout ? vector_cost::kDropout : 0)};
  steps.then(
      compiled(stream(name, KernelClass::kElementwise, rows, task.model.hidden, cost), task.work));
  makes(steps, task, {mask});
}

void residual_backward(StepList& steps, const std::string& name, const LayerTask& task,
                       KeptTensor mask) {
  if (!task.work.passes.dropout || task.model.residual_streams > 1) return;
  const double bytes = task.bytes();
  steps.then(compiled(stream(name, KernelClass::kElementwise, task.work.row_tokens(),
                             task.model.hidden, {bytes + 1, bytes, 1}),
                      task.work));
  frees(steps, task, {mask});
}

namespace {

/// What gives the weights of a half: one of each stream in its input, one for its output in each,
/// and those of each stream in each.
Linear connection_weights(const LayerTask& task) {
  const std::int64_t streams = task.model.residual_streams;
  return {"hyper connection weights", streams * task.model.hidden, streams * (2 + streams),
          unquantised(task.work.formats.precision)};
}

/// Sums and quotients of rows and columns in turn, for each weight.
Flops sinkhorn_flops(const LayerTask& task) {
  const std::int64_t streams = task.model.residual_streams;
  return Flops(real(task.work.row_tokens() * task.model.sinkhorn_steps) * 4 *
               real(streams * streams));
}

Tensor copies_of_rows(const char* name, const LayerTask& task, double copies) {
  return kept::of_layer(name, task,
                        copies * real(task.work.row_tokens() * task.model.hidden) * task.bytes());
}

double residual_inputs(const LayerTask& task) {
  if (task.model.residual_streams > 1) return real(task.model.residual_streams);
  return task.layer.sources > 0 ? 1 : 0;
}

double half_outputs(const LayerTask& task) { return task.model.residual_streams > 1 ? 1 : 0; }

}  // namespace

namespace kept {

Tensor attention_residual_input(const LayerTask& task) {
  Tensor tensor = copies_of_rows("attention residual input", task, residual_inputs(task));
  tensor.role = task.work.passes.input_again ? TensorRole::kWorking : TensorRole::kActivation;
  return tensor;
}

Tensor mlp_residual_input(const LayerTask& task) {
  return copies_of_rows("mlp residual input", task, residual_inputs(task));
}

Tensor attention_half_output(const LayerTask& task) {
  return copies_of_rows("attention half output", task, half_outputs(task));
}

Tensor mlp_half_output(const LayerTask& task) {
  return copies_of_rows("mlp half output", task, half_outputs(task));
}

Tensor block_outputs(const LayerTask& task) {
  const double outputs = task.work.passes.keeps_sources ? real(task.layer.sources - 1)
                         : task.layer.begins_block      ? 1
                                                        : 0;
  Tensor tensor = copies_of_rows("attention block outputs", task, outputs);
  tensor.role = TensorRole::kActivation;
  return tensor;
}

Tensor residual_gradients(const LayerTask& task) {
  const double all =
      task.model.residual_streams > 1 ? residual_inputs(task) : real(task.layer.sources);
  Tensor tensor = copies_of_rows("attention residual gradients", task, all);
  tensor.role = TensorRole::kWorking;
  return tensor;
}

}  // namespace kept

bool mixes_residuals(const LayerTask& task) {
  return task.model.residual_streams > 1 || task.layer.sources > 0;
}

double residual_copies(const LlmConfig& model, std::int64_t next_layer) {
  if (model.residual_streams > 1) return real(model.residual_streams);
  if (model.residual_block == 0 || next_layer >= model.layer_count()) return 1;
  return real(model.layers[static_cast<std::size_t>(next_layer)].sources);
}

void hyper_connection_in(StepList& steps, const LayerTask& task) {
  const std::int64_t streams = task.model.residual_streams, rows = task.work.row_tokens();
  if (streams == 1) return;
  const double bytes = task.bytes(), all = real(streams);
  const Linear weights = connection_weights(task);
  steps.then(gemm(weights.name, weights.precision, {rows, weights.out, weights.in}));
  Kernel mixture = stream("hyper connection in", KernelClass::kElementwise, rows, task.model.hidden,
                          {all * bytes, bytes, 2 * all});
  mixture.vector_flops += sinkhorn_flops(task);
  steps.then(mixture);
}

// Backwards (arXiv 2512.24880, section 4.3.1: each of the two in one kernel, the steps of Sinkhorn
// computed again on chip): reads of each operand of a product, and of the sums of gradients.

void hyper_connection_out_backward(StepList& steps, const LayerTask& task) {
  if (task.model.residual_streams == 1) return;
  const double bytes = task.bytes();
  const double all = real(task.model.residual_streams);
  steps.then(stream("hyper connection out backward", KernelClass::kElementwise,
                    task.work.row_tokens(), task.model.hidden,
                    {(2 * all + 1) * bytes, (all + 1) * bytes, 4 * all * (1 + all)}));
  makes(steps, task.again(), {kept::residual_gradients});
}

void hyper_connection_in_backward(StepList& steps, const LayerTask& task) {
  if (task.model.residual_streams == 1) return;
  const double bytes = task.bytes();
  const double all = real(task.model.residual_streams);
  Kernel mixture =
      stream("hyper connection in backward", KernelClass::kElementwise, task.work.row_tokens(),
             task.model.hidden, {(2 * all + 1) * bytes, all * bytes, 6 * all});
  mixture.vector_flops += 3 * sinkhorn_flops(task);
  steps.then(mixture);
  local_backward(steps, task.work, connection_weights(task), task.work.row_tokens());
  steps.then(stream("hyper connection gradient addition", KernelClass::kElementwise,
                    task.work.row_tokens(), task.model.residual_streams * task.model.hidden,
                    {2 * bytes, bytes, 1}));
  frees(steps, task, {kept::residual_gradients});
}

void hyper_connection_out(StepList& steps, const LayerTask& task, std::int64_t rows) {
  const double streams = real(task.model.residual_streams);
  if (task.model.residual_streams == 1) return;
  const double bytes = task.bytes();
  steps.then(stream("hyper connection out", KernelClass::kElementwise, rows, task.model.hidden,
                    {(1 + streams) * bytes, streams * bytes, 2 * streams * (1 + streams)}));
}

void residual_mixture(StepList& steps, const LayerTask& task) {
  if (task.layer.sources == 0) return;
  const double bytes = task.bytes(), sources = real(task.layer.sources);
  steps.then(stream("residual mixture", KernelClass::kElementwise, task.work.row_tokens(),
                    task.model.hidden,
                    {sources * bytes, bytes, sources * (vector_cost::kRmsNorm + 4)}));
}

void residual_mixture_backward(StepList& steps, const LayerTask& task) {
  if (task.layer.sources == 0) return;
  const double bytes = task.bytes(), sources = real(task.layer.sources);
  steps.then(stream(
      "residual mixture backward", KernelClass::kElementwise, task.work.row_tokens(),
      task.model.hidden,
      {(2 * sources + 1) * bytes, sources * bytes, sources * (vector_cost::kNormBackward + 6)}));
  makes(steps, task.again(), {kept::residual_gradients});
  frees(steps, task, {kept::residual_gradients});
}

namespace {

/// Weights of the streams in front of the final norm.
Linear end_weights(const LlmConfig& model, const RankWork& work) {
  return {"residual end weights", model.residual_streams * model.hidden, model.residual_streams,
          unquantised(work.formats.precision)};
}

/// Streams, or outputs of blocks, that are added up in the end.
double end_sources(const LlmConfig& model) {
  if (model.residual_streams > 1) return real(model.residual_streams);
  return model.residual_block > 0 && !model.layers.empty() ? real(model.layers.back().sources) : 0;
}

}  // namespace

void residual_end(StepList& steps, const LlmConfig& model, const RankWork& work,
                  std::int64_t rows) {
  const double sources = end_sources(model), bytes = activation_bytes(work.formats.precision);
  if (sources == 0) return;
  const bool streams = model.residual_streams > 1;
  if (streams) {
    const Linear weights = end_weights(model, work);
    steps.then(gemm(weights.name, weights.precision, {rows, weights.out, weights.in}));
  }
  steps.then(stream("residual end", KernelClass::kElementwise, rows, model.hidden,
                    {sources * bytes, bytes, sources * (streams ? 2 : vector_cost::kRmsNorm + 4)}));
}

void residual_end_backward(StepList& steps, const LlmConfig& model, const RankWork& work) {
  const double sources = end_sources(model), bytes = activation_bytes(work.formats.precision);
  if (sources == 0) return;
  const bool streams = model.residual_streams > 1;
  steps.then(stream("residual end backward", KernelClass::kElementwise, work.row_tokens(),
                    model.hidden,
                    {(sources + 1) * bytes, sources * bytes,
                     sources * (streams ? 4 : vector_cost::kNormBackward + 6)}));
  if (streams) local_backward(steps, work, end_weights(model, work), work.row_tokens());
}

}  // namespace orrery
