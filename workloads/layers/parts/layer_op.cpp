// SPDX-License-Identifier: Apache-2.0
#include "workloads/layers/parts/layer_op.h"

#include <algorithm>
#include <utility>

#include "workloads/software/training_switches.h"

namespace orrery {

namespace {

/// Whether the gradient of an operation reads a tensor.
bool reads(const LayerOp& op, KeptTensor tensor) {
  return std::ranges::count(op.keeps, tensor) + std::ranges::count(op.needs, tensor) > 0;
}

}  // namespace

void run_forward(StepList& steps, const LayerTask& task, const std::vector<LayerOp>& ops) {
  for (const LayerOp& op : ops) {
    if (op.part) issued(steps, task, *op.part);
    if (op.forward) op.forward(steps, task);
    for (const KeptTensor tensor : op.keeps) makes(steps, task, {tensor});
    for (const KeptTensor tensor : op.makes) makes(steps, task, {tensor});
  }
}

void run_backward(StepList& steps, const LayerTask& task, const std::vector<LayerOp>& ops) {
  for (auto op = ops.rbegin(); op != ops.rend(); ++op) {
    if (op->part) issued(steps, task, *op->part);
    if (op->gradient) op->gradient(steps, task);
    for (const KeptTensor tensor : op->keeps) frees(steps, task, {tensor});
    for (const KeptTensor tensor : op->needs) {
      const bool read_later = std::any_of(
          op + 1, ops.rend(), [tensor](const LayerOp& other) { return reads(other, tensor); });
      read_later ? uses(steps, task, {tensor}) : frees(steps, task, {tensor});
    }
  }
}

StepList forward_pass(const LayerTask& task, const std::vector<LayerOp>& ops) {
  StepList steps;
  steps.tell_tensors(task.work.passes.tensors);
  run_forward(steps, task, ops);
  return steps;
}

StepList backward_pass(const LayerTask& task, const std::vector<LayerOp>& ops) {
  StepList steps;
  steps.tell_tensors(task.work.passes.tensors);
  run_backward(steps, task, ops);
  return steps;
}

void append(std::vector<LayerOp>& ops, GraphPart part, std::vector<LayerOp> more) {
  for (LayerOp& op : more) {
    if (!op.part) op.part = part;
    ops.push_back(std::move(op));
  }
}

LayerOp with_work(RankWork (*own)(RankWork),
                  std::function<std::vector<LayerOp>(const LayerTask& task)> ops) {
  const auto run = [=, ops = std::move(ops)](auto pass) {
    return [=](StepList& steps, const LayerTask& task) {
      const RankWork work = own(task.work);
      const LayerTask of_own{task.model, task.layer, work, task.forward};
      pass(steps, of_own, ops(of_own));
    };
  };
  return {run(run_forward), run(run_backward)};
}

LayerOp again_op(const LayerTask& task, RecomputeModule module, const std::vector<LayerOp>& ops) {
  if (!task.work.recomputes(module)) return {};
  return {{}, [ops](StepList& steps, const LayerTask& of) {
            if (of.work.recomputes(RecomputeModule::kLayernorm))
              steps.then(norm_forward("mlp norm", of, of.work.row_tokens()));
            run_forward(steps, of.again(), ops);
          }};
}

LayerOp::Emit kernels(std::vector<Kernel> all) {
  return [all = std::move(all)](StepList& steps, const LayerTask& /*task*/) {
    for (const Kernel& kernel : all) steps.then(kernel);
  };
}

LayerOp norm_op(const std::string& name, const LayerTask& task, PastBlock past,
                std::vector<KeptTensor> keeps) {
  return {kernels({norm_forward(name, task, task.work.row_tokens())}),
          [=](StepList& steps, const LayerTask& of) {
            norm_backward(steps, name + " backward", of, of.work.row_tokens(), past);
          },
          std::move(keeps)};
}

void norm_again(StepList& steps, const LayerTask& task, const std::string& norm,
                KeptTensor output) {
  if (!task.work.recomputes(RecomputeModule::kLayernorm)) return;
  steps.then(norm_forward(norm, task, task.work.row_tokens()));
  makes(steps, task.again(), {output});
}

LayerOp input_op(const std::vector<Linear>& linears, std::string norm) {
  return {[linears](StepList& steps, const LayerTask& task) {
            column_forward(steps, task.work, linears, task.model.hidden);
          },
          [linears, norm = std::move(norm)](StepList& steps, const LayerTask& task) {
            norm_again(steps, task, norm);
            column_backward(steps, task.work, linears, task.model.hidden);
          },
          {kept::attention_input}};
}

LayerOp column_op(const std::vector<Linear>& linears, std::int64_t width,
                  std::vector<KeptTensor> needs) {
  return {[=](StepList& steps, const LayerTask& task) {
            column_forward(steps, task.work, linears, width);
          },
          [=](StepList& steps, const LayerTask& task) {
            column_backward(steps, task.work, linears, width);
          },
          {},
          {},
          std::move(needs)};
}

LayerOp row_op(const Linear& linear, std::vector<KeptTensor> needs,
               std::optional<RowOutput> output) {
  return {[=](StepList& steps, const LayerTask& task) {
            const bool scattered = task.scatters_attention();
            row_forward(steps, task.work, linear,
                        output.value_or(scattered ? RowOutput::kScattered : RowOutput::kReduced));
          },
          [=](StepList& steps, const LayerTask& task) { row_backward(steps, task.work, linear); },
          {},
          {},
          std::move(needs)};
}

LayerOp core_output_op(Linear linear, std::optional<RowOutput> output) {
  LayerOp op = row_op(linear, {kept::output_projection_input}, output);
  op.gradient = [linear = std::move(linear)](StepList& steps, const LayerTask& task) {
    row_backward(steps, task.work, linear);
    if (!task.work.formats.narrow_inputs) uses(steps, task, {kept::attention_result});
  };
  return op;
}

LayerOp local_op(const Linear& linear, std::int64_t rows, std::vector<KeptTensor> needs) {
  return {[=](StepList& steps, const LayerTask& task) {
            local_forward(steps, task.work, linear, rows);
          },
          [=](StepList& steps, const LayerTask& task) {
            local_backward(steps, task.work, linear, rows);
          },
          {},
          {},
          std::move(needs)};
}

}  // namespace orrery
