// SPDX-License-Identifier: Apache-2.0
#include "workloads/layers/experts/experts.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include "workloads/base/real.h"
#include "workloads/layers/parts/expert_rows.h"
#include "workloads/layers/parts/kept_tensors.h"
#include "workloads/layers/parts/linear.h"
#include "workloads/software/engine_switches.h"
#include "workloads/software/narrow_casts.h"

namespace orrery {
namespace {

Precision products(const LayerTask& task) { return task.precision(task.layer.feed); }

std::int64_t function_inputs(const LayerTask& task) { return task.model.mlp.gated ? 2 : 1; }

/// Whether narrow operands are made apart from what computes their values.
bool casts(const LayerTask& task) {
  return task.work.trains() &&
         task.work.software->scaling(products(task)) != NarrowScaling::kFused &&
         expert_software(task).functions.value != ExpertFunctions::kFused;
}

/// Whether products compute the function between them.
bool products_do_all(const LayerTask& task) {
  return task.work.trains() && expert_software(task).functions.value == ExpertFunctions::kProducts;
}

/// Launches of a kernel over the rows of all experts.
std::int64_t launches(const LayerTask& task) {
  const bool each =
      task.work.trains() && expert_software(task).launches.value == ExpertLaunches::kPerExpert;
  return each ? local_experts(task) : 1;
}

Kernel launched(Kernel kernel, const LayerTask& task) {
  kernel.launches = launches(task);
  return kernel;
}

Kernel backward_product(Kernel kernel, const LayerTask& task) {
  return launched(gradient_product(task.work, std::move(kernel)), task);
}

// Rows of experts that are kept. Where etp ranks share each expert, each has the rows of all and
// its part of the columns.

Tensor expert_input(const LayerTask& task) {
  return kept::of_modules("expert input", task,
                          kept::routed_rows(task) * real(task.model.expert_columns()) *
                              task.work.split.etp * kept::input_bytes(task.work),
                          {RecomputeModule::kMoe});
}

Tensor expert_function_input(const LayerTask& task) {
  return kept::of_modules("expert function input", task,
                          kept::routed_rows(task) * real(task.model.moe.intermediate) *
                              kept::function_columns(task) * task.bytes(),
                          {RecomputeModule::kMoe});
}

Tensor expert_down_input(const LayerTask& task) {
  return kept::of_modules(
      "expert down input", task,
      kept::routed_rows(task) * real(task.model.moe.intermediate) * kept::input_bytes(task.work),
      {RecomputeModule::kMoe, RecomputeModule::kMoeAct});
}

/// For the gradients of the gates, which with expert parallelism see reduced outputs; none where
/// functions multiply by the weights of gates.
Tensor expert_outputs(const LayerTask& task) {
  const bool weighted = task.work.software->experts.gate_weights.value == GateWeights::kResults;
  const int copies = !weighted ? 0 : task.work.split.ep == 1 ? task.work.split.etp : 1;
  return kept::of_modules(
      "expert outputs", task,
      kept::routed_rows(task) * real(task.model.expert_columns()) * copies * task.bytes(),
      {RecomputeModule::kMoe});
}

/// A pass over [rows, width].
LayerOp::Emit pass(const LayerTask& task, const char* name, std::int64_t width, StreamCost cost,
                   std::int64_t count = 1) {
  Kernel kernel = elementwise(name, expert_rows(task), width, cost);
  kernel.launches = count;
  return kernels({std::move(kernel)});
}

/// Copies of rows into filled ones, or back, by kernels of their own.
LayerOp fill(const LayerTask& task, const char* name, const char* gradient) {
  const ExpertSoftware& software = expert_software(task);
  if (!casts(task) || !software.filling_apart.value || software.row_multiple.value == 1) return {};
  const StreamCost copy{task.bytes(), task.bytes(), 0};
  const std::int64_t columns = task.model.expert_columns();
  return {pass(task, name, columns, copy), pass(task, gradient, columns, copy)};
}

bool biases_apart(const LayerTask& task) {
  return task.work.trains() && expert_software(task).biases_apart.value && !products_do_all(task);
}

/// Biases of the second matrices times the weights of gates: a product, its sum
/// with the results, and one tensor of those of all experts (Megatron-Core
/// 2025, transformer/moe/experts.py: _apply_bias). Backwards products with
/// either factor and their sums.
LayerOp add_biases(const LayerTask& task) {
  if (!biases_apart(task) || !task.model.moe.expert_bias) return {};
  const double bytes = task.bytes();
  const std::int64_t columns = task.model.expert_columns(), each = launches(task);
  return {pass(task, "expert bias", columns, {3 * bytes, 3 * bytes, 2}, 2 * each + 1),
          pass(task, "expert bias gradient", columns, {4 * bytes, 2 * bytes, 4}, 4 * each)};
}

/// Halves of the inputs of functions are limited and joined (Megatron-Core
/// 2025, fusions/fused_bias_geglu.py: weighted_bias_quick_geglu_impl with
/// clamp_value); backwards limits look at their inputs again.
LayerOp limits(const LayerTask& task) {
  if (!biases_apart(task) || !task.model.moe.clamped) return {};
  const double bytes = task.bytes();
  const std::int64_t columns = function_inputs(task) * split_width(task);
  return {pass(task, "expert function limits", columns, {2 * bytes, 2 * bytes, 1}, 3),
          pass(task, "expert function limits backward", columns, {3 * bytes, 2 * bytes, 1}, 3)};
}

/// Copies of what experts keep, from the buffers of all layers to pages, and
/// back.
LayerOp stash(const LayerTask& task) {
  if (!task.work.trains() || !expert_software(task).stash.value) return {};
  const double bytes =
      (expert_input(task).bytes + expert_function_input(task).bytes + expert_down_input(task).bytes)
          .base();
  const double a_row = bytes / real(expert_rows(task));
  return {pass(task, "expert stash", 1, {a_row, a_row, 0}),
          pass(task, "expert stash backward", 1, {a_row, a_row, 0})};
}

/// Narrow operands of [rows, width]; scales of all experts' weights are put in
/// order at once, and left out.
void cast(StepList& steps, const LayerTask& task, const std::string& name, std::int64_t width) {
  if (!casts(task)) return;
  NarrowOperand operand;
  operand.name = name;
  operand.rows = expert_rows(task);
  operand.width = width;
  operand.precision = products(task);
  operand.wide = task.bytes();
  const TrainingSoftware& software = *task.work.software;
  if (const auto largest = largest_value(software, operand)) steps.then(launched(*largest, task));
  for (Kernel& kernel : narrow_casts(software, operand)) {
    const std::int64_t alone = kernel.launches;
    Kernel issued = launched(std::move(kernel), task);
    issued.launches = std::max(issued.launches, alone);
    steps.then(std::move(issued));
  }
}

/// Bytes of the inputs of functions, and of narrow copies of them or of what
/// functions give.
Bytes function_bytes(const LayerTask& task, double inputs, double element) {
  return Bytes(real(expert_rows(task)) * real(split_width(task)) * inputs * element);
}

/// Inference: whether kernels of their own quantise what the products of
/// engines read, in whose price it is not. DeepGEMM's for experts with room for
/// their most rows (decodes) have it in the function (SGLang
/// layers/moe/ep_moe/layer.py: silu_and_mul_masked_post_quant_fwd).
bool quantises_inputs(const LayerTask& task) {
  const RankWork& w = task.work;
  if (w.kernels.on(kQuantFusion) || products(task) != Precision::kFp8Block) return false;
  if (w.kernels.experts == ExpertKernels::kDeepGemm) return sends_tokens_once(task);
  return w.kernels.experts == ExpertKernels::kTriton;
}

/// With the weights of the experts as the checkpoint stores them.
Kernel expert_product(const char* name, const LayerTask& task, const GroupedShape& shape) {
  const Precision stored = products(task);
  const bool blocks = stored == Precision::kFp8Block;
  const bool sums = blocks && task.work.kernels.experts == ExpertKernels::kTriton;
  Kernel kernel = grouped_gemm(name, sums ? Precision::kFp8 : stored, shape);
  if (blocks && task.work.kernels.experts == ExpertKernels::kDeepGemm) {
    // DeepGEMM's tiles go through all experts as through one product
    // (gemm/scheduler.cuh). Against its README's grouped products on H800 dense
    // ones are 7 % off, up to 13; those of fp8 19, up to 32.
    kernel.kind = KernelClass::kGemm;
    kernel.load = {};
  }
  kernel.weights = task.weights(task.layer.feed);
  kernel.weights.scale_bits = 0;  // fits of experts have their scales in them
  const double saved =
      element_bytes(kernel.precision) - stored_weight_bytes(kernel.precision, kernel.weights);
  kernel.read -= Bytes(shape.experts * real(shape.n) * real(shape.k) * saved);
  return launched(std::move(kernel), task);
}

Kernel expert_function(const LayerTask& task) {
  const bool wide = casts(task) || quantises_inputs(task);
  const Precision written = wide ? unquantised(task.work.formats.precision) : products(task);
  return gate_apart(task, activation("expert activation", written, expert_rows(task),
                                     split_width(task), task.model.mlp.gated));
}

void weight_gradient(StepList& steps, const LayerTask& task, const std::string& name,
                     const GroupedShape& shape, std::size_t gradient) {
  if (task.work.lora.trains) return;  // frozen
  const GradientBuffer buffer = gradient_buffer(task.work);
  const std::size_t product = steps.for_weights(
      backward_product(grouped_weight_gradient(name, task.work.formats.precision, shape, buffer),
                       task),
      {gradient});
  if (!buffer.apart) return;
  const auto rows = static_cast<std::int64_t>(std::ceil(shape.experts)) * shape.k;
  steps.for_weights(gradient_addition(name, rows, shape.n, buffer), {product});
}

void up_forward(StepList& steps, const LayerTask& task) {
  GroupedShape up = expert_up(task);
  up.load.copies = up.rows;
  // Tokens that come here: all of the exchange, or one for each copy where
  // those are fewer.
  const double tokens =
      all_reduces(task) ? real(task.work.tokens())
                        : real(task.work.split_tokens() * task.work.split.ep * task.work.split.etp);
  up.load.choices = std::min(up.rows, tokens) * up.load.experts;
  cast(steps, task, "expert up input", task.model.expert_columns());
  if (quantises_inputs(task) && all_reduces(task))
    steps.then(quantize("expert up input quantisation", products(task), task.work.tokens(),
                        task.model.expert_columns()));
  Kernel product = expert_product("expert up", task, up);
  if (products_do_all(task))
    product.written += function_bytes(task, 1, 2 * element_bytes(products(task)));
  steps.then(product);
}

void experts_down_forward(StepList& steps, const LayerTask& task) {
  if (!products_do_all(task)) cast(steps, task, "expert down input", split_width(task));
  if (quantises_inputs(task))
    steps.then(quantize("expert down input quantisation", products(task), expert_rows(task),
                        split_width(task)));
  steps.then(expert_product("expert down", task, expert_down(task)));
}

void experts_down_backward(StepList& steps, const LayerTask& task) {
  cast(steps, task, "expert down gradient", task.model.expert_columns());
  const std::size_t gradient = steps.cursor();
  Kernel product = backward_product(
      grouped_data_gradient("expert down", task.work.formats.precision, expert_down(task)), task);
  if (products_do_all(task)) {
    const double inputs = real(function_inputs(task));
    product.read += function_bytes(task, inputs, task.bytes());
    product.written = function_bytes(task, inputs, 2 * element_bytes(products(task)));
  }
  steps.then(product);
  weight_gradient(steps, task, "expert down", expert_down(task), gradient);
}

/// The function between the products, unless these compute it.
LayerOp function_op(const LayerTask& task) {
  LayerOp op{.keeps = {expert_function_input}, .makes = {expert_down_input}};
  if (products_do_all(task)) return op;
  op.forward = kernels({expert_function(task)});
  op.gradient = kernels({activation_backward("expert activation backward", task, expert_rows(task),
                                             split_width(task))});
  return op;
}

/// What selective recomputation makes again of the function.
void function_again(StepList& steps, const LayerTask& task) {
  if (!again_alone(task, RecomputeModule::kMoeAct) || products_do_all(task)) return;
  steps.then(expert_function(task));
  makes(steps, task.again(), {expert_down_input});
  cast(steps, task, "expert down input", split_width(task));
}

}  // namespace

LayerOp first_weight_gradient(const LayerTask& task, ExpertGradients place,
                              const std::shared_ptr<ExpertSteps>& earlier) {
  if (expert_software(task).weight_gradients.value != place) return {};
  return {{},
          [=](StepList& steps, const LayerTask& of) {
            weight_gradient(steps, of, "expert up", expert_up(of), earlier->gradient);
          },
          {},
          {},
          {expert_input}};
}

std::vector<LayerOp> expert_ops(const LayerTask& task,
                                const std::shared_ptr<ExpertSteps>& earlier) {
  const auto up_backward = [=](StepList& steps, const LayerTask& of) {
    if (!products_do_all(of))
      cast(steps, of, "expert up gradient", function_inputs(of) * split_width(of));
    earlier->gradient = steps.cursor();
    steps.then(backward_product(
        grouped_data_gradient("expert up", of.work.formats.precision, expert_up(of)), of));
  };
  return {fill(task, "expert rows filled", "expert rows filled backward"),
          first_weight_gradient(task, ExpertGradients::kWithProducts, earlier),
          {up_forward, up_backward, {}, {expert_input}},
          limits(task),
          function_op(task),
          {experts_down_forward, experts_down_backward, {}, {expert_outputs}, {expert_down_input}},
          add_biases(task),
          fill(task, "expert rows cut", "expert rows cut backward"),
          stash(task),
          {{}, function_again},
          {.needs = {expert_outputs}}};
}

}  // namespace orrery
