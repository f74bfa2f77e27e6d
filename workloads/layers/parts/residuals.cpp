// SPDX-License-Identifier: Apache-2.0
#include "workloads/layers/parts/residuals.h"

#include <utility>

#include "workloads/base/real.h"
#include "workloads/layers/parts/linear.h"

namespace orrery {

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

void hyper_connection_in(StepList& steps, const LayerTask& task) {
  const std::int64_t rows = task.work.row_tokens();
  const double bytes = task.bytes(), all = real(task.model.residual_streams);
  const Linear weights = connection_weights(task);
  steps.then(gemm(weights.name, weights.precision, {rows, weights.out, weights.in}));
  Kernel mixture =
      elementwise("hyper connection in", rows, task.model.hidden, {all * bytes, bytes, 2 * all});
  mixture.vector_flops += sinkhorn_flops(task);
  steps.then(mixture);
}

// Backwards (arXiv 2512.24880, section 4.3.1: each of the two in one kernel, the steps of Sinkhorn
// computed again on chip): reads of each operand of a product, and of the sums of gradients.

void hyper_connection_in_backward(StepList& steps, const LayerTask& task) {
  const std::int64_t rows = task.work.row_tokens();
  const double bytes = task.bytes(), all = real(task.model.residual_streams);
  Kernel mixture = elementwise("hyper connection in backward", rows, task.model.hidden,
                               {(2 * all + 1) * bytes, all * bytes, 6 * all});
  mixture.vector_flops += 3 * sinkhorn_flops(task);
  steps.then(mixture);
  local_backward(steps, task.work, connection_weights(task), rows);
  steps.then(elementwise("hyper connection gradient addition", rows,
                         task.model.residual_streams * task.model.hidden, {2 * bytes, bytes, 1}));
  frees(steps, task, {kept::residual_gradients});
}

void hyper_connection_out_backward(StepList& steps, const LayerTask& task) {
  const double bytes = task.bytes(), all = real(task.model.residual_streams);
  steps.then(elementwise("hyper connection out backward", task.work.row_tokens(), task.model.hidden,
                         {(2 * all + 1) * bytes, (all + 1) * bytes, 4 * all * (1 + all)}));
  makes(steps, task.again(), {kept::residual_gradients});
}

void residual_mixture(StepList& steps, const LayerTask& task) {
  const double bytes = task.bytes(), sources = real(task.layer.sources);
  steps.then(elementwise("residual mixture", task.work.row_tokens(), task.model.hidden,
                         {sources * bytes, bytes, sources * (vector_cost::kRmsNorm + 4)}));
}

void residual_mixture_backward(StepList& steps, const LayerTask& task) {
  const double bytes = task.bytes(), sources = real(task.layer.sources);
  steps.then(elementwise(
      "residual mixture backward", task.work.row_tokens(), task.model.hidden,
      {(2 * sources + 1) * bytes, sources * bytes, sources * (vector_cost::kNormBackward + 6)}));
  makes(steps, task.again(), {kept::residual_gradients});
  frees(steps, task, {kept::residual_gradients});
}

/// Weights of the streams in front of the final norm.
Linear end_weights(const LayerTask& task) {
  const std::int64_t streams = task.model.residual_streams;
  return {"residual end weights", streams * task.model.hidden, streams,
          unquantised(task.work.formats.precision)};
}

/// Streams, or outputs of blocks, that are added up in the end.
double end_sources(const LlmConfig& model) {
  if (model.residual_streams > 1) return real(model.residual_streams);
  return model.residual_block > 0 && !model.layers.empty() ? real(model.layers.back().sources) : 0;
}

void residual_end_forward(StepList& steps, const LayerTask& task) {
  const double sources = end_sources(task.model), bytes = task.bytes();
  const std::int64_t rows = task.work.logit_rows();
  const bool streams = task.model.residual_streams > 1;
  if (streams) {
    const Linear weights = end_weights(task);
    steps.then(gemm(weights.name, weights.precision, {rows, weights.out, weights.in}));
  }
  steps.then(
      elementwise("residual end", rows, task.model.hidden,
                  {sources * bytes, bytes, sources * (streams ? 2 : vector_cost::kRmsNorm + 4)}));
}

void residual_end_backward(StepList& steps, const LayerTask& task) {
  const double sources = end_sources(task.model), bytes = task.bytes();
  const std::int64_t rows = task.work.row_tokens();
  const bool streams = task.model.residual_streams > 1;
  steps.then(elementwise("residual end backward", rows, task.model.hidden,
                         {(sources + 1) * bytes, sources * bytes,
                          sources * (streams ? 4 : vector_cost::kNormBackward + 6)}));
  if (streams) local_backward(steps, task.work, end_weights(task), rows);
}

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

LayerOp residual_input(const LayerTask& task, std::vector<KeptTensor> needs) {
  LayerOp op;
  if (task.model.residual_streams > 1) op = {hyper_connection_in, hyper_connection_in_backward};
  if (task.layer.sources > 0) op = {residual_mixture, residual_mixture_backward};
  op.needs = std::move(needs);
  return op;
}

LayerOp residual_output(const std::string& name, const LayerTask& task, std::int64_t rows,
                        KeptTensor mask, KeptTensor output) {
  const double bytes = task.bytes(), streams = real(task.model.residual_streams);
  const auto pass = [&](const std::string& what, StreamCost cost) {
    return elementwise(what, rows, task.model.hidden, cost);
  };
  if (streams > 1)
    return {kernels({pass("hyper connection out",
                          {(1 + streams) * bytes, streams * bytes, 2 * streams * (1 + streams)})}),
            hyper_connection_out_backward,
            {output}};
  if (!task.work.trains()) return {};
  const double drops = task.work.passes.dropout ? 1 : 0;
  LayerOp add{kernels({compiled(
      pass(name, {2 * bytes, bytes + drops, 1 + drops * vector_cost::kDropout}), task.work)})};
  if (drops > 0)
    add.gradient = kernels({compiled(pass(name + " backward", {bytes + 1, bytes, 1}), task.work)});
  add.keeps = {mask};
  return add;
}

LayerOp residual_end(const LayerTask& task) {
  if (end_sources(task.model) == 0) return {};
  return {residual_end_forward, residual_end_backward};
}

}  // namespace orrery
