// SPDX-License-Identifier: Apache-2.0
#include "workloads/llm/linear.h"

#include <utility>

#include "workloads/llm/kernels.h"

namespace orrery {
namespace {

GemmShape shape_of(const Linear& linear, std::int64_t rows) {
  return {.m = rows, .n = linear.out, .k = linear.in};
}

/// The input of a product, where nobody before has quantised it.
void quantise_input(StepList& steps, const LayerWork& work, const Linear& linear) {
  if (!work.quantises_apart || element_bytes(linear.precision) >= 2) return;
  steps.then(
      quantize(linear.name + " input quantisation", linear.precision, work.tokens(), linear.in));
}

/// The kernel that adds a bias, where the product does not.
void add_bias(StepList& steps, const LayerWork& work, const Linear& linear) {
  if (linear.bias != Bias::kAdded || work.phase != Phase::kTraining ||
      work.software->bias_addition.value == Fusion::kFused)
    return;
  const double bytes = activation_bytes(work.precision);
  steps.then(stream(linear.name + " bias", KernelClass::kElementwise, work.tokens(), linear.out,
                    {bytes, bytes, 1}));
}

/// Sums of columns of the output's gradient, where the product of weight gradients has none.
void sum_bias_gradient(StepList& steps, const LayerWork& work, const Linear& linear,
                       std::int64_t rows, std::size_t gradient) {
  if (linear.bias == Bias::kNone || work.software->bias_gradients.value == Fusion::kFused) return;
  steps.for_weights(stream(linear.name + " bias gradient", KernelClass::kElementwise, rows,
                           linear.out, {activation_bytes(work.precision), 0, 1}),
                    {gradient});
}

/// The gradient of a matrix, added to that of earlier micro-batches.
/// @return the last step
std::size_t add_weight_gradient(StepList& steps, const LayerWork& work, const Linear& linear,
                                std::int64_t rows, const std::vector<std::size_t>& after) {
  const GradientBuffer buffer = gradient_buffer(work);
  const std::size_t product = steps.for_weights(
      weight_gradient(linear.name, linear.precision, shape_of(linear, rows), buffer), after);
  if (!buffer.apart) return product;
  return steps.for_weights(gradient_addition(linear.name, linear.in, linear.out, buffer),
                           {product});
}

}  // namespace

GradientBuffer gradient_buffer(const LayerWork& work) {
  return {work.software->gradient_bytes(work.precision), work.software->accumulates_apart()};
}

LayerCollective tensor_collective(std::string name, TransferKind kind, const LayerWork& work,
                                  std::int64_t width) {
  LayerCollective collective;
  collective.name = std::move(name);
  collective.kind = kind;
  collective.scope = Scope::kTensor;
  collective.bytes = Bytes(static_cast<double>(work.tokens()) * static_cast<double>(width) *
                           activation_bytes(work.precision));
  return collective;
}

void column_forward(StepList& steps, const LayerWork& work, const std::vector<Linear>& linears,
                    std::int64_t width) {
  if (work.sp) {
    steps.then(tensor_collective(linears.front().name + " input all-gather",
                                 TransferKind::kAllGather, work, width));
  }
  quantise_input(steps, work, linears.front());
  for (const Linear& linear : linears) {
    steps.then(
        gemm(linear.name, linear.precision, shape_of(linear, work.tokens()), linear.weights));
    adapter_forward(steps, work, linear);
    add_bias(steps, work, linear);
  }
}

void column_backward(StepList& steps, const LayerWork& work, const std::vector<Linear>& linears,
                     std::int64_t width) {
  const std::string& name = linears.front().name;
  const bool overlaps = work.software->overlaps_tensor_parallelism();
  const std::size_t gradient = steps.cursor();
  std::size_t input = StepList::kStart;
  if (work.sp) {
    const LayerCollective gather =
        tensor_collective(name + " input all-gather again", TransferKind::kAllGather, work, width);
    input = overlaps ? steps.for_weights(gather, {gradient}) : steps.then(gather);
  }
  for (const Linear& linear : linears) {
    steps.then(data_gradient(linear.name, linear.precision, shape_of(linear, work.tokens())));
  }
  const auto weight_gradients = [&] {
    std::vector<std::size_t> last;
    for (const Linear& linear : linears) {
      sum_bias_gradient(steps, work, linear, work.tokens(), gradient);
      last.push_back(add_weight_gradient(steps, work, linear, work.tokens(), {input, gradient}));
    }
    return last;
  };
  if (work.tp == 1) {
    weight_gradients();
    return;
  }
  const auto kind = work.sp ? TransferKind::kReduceScatter : TransferKind::kAllReduce;
  const std::string verb = work.sp ? "reduce-scatter" : "all-reduce";
  const LayerCollective reduction =
      tensor_collective(name + " dgrad " + verb, kind, work, width);
  if (overlaps) {
    steps.then(reduction);
    weight_gradients();
  } else {
    steps.join(reduction, weight_gradients());
  }
}

void row_forward(StepList& steps, const LayerWork& work, const Linear& linear, RowOutput output) {
  quantise_input(steps, work, linear);
  steps.then(gemm(linear.name, linear.precision, shape_of(linear, work.tokens()), linear.weights));
  adapter_forward(steps, work, linear);
  if (work.tp == 1) return;
  if (output == RowOutput::kScattered) {
    steps.then(tensor_collective(linear.name + " output reduce-scatter",
                                 TransferKind::kReduceScatter, work, linear.out));
  } else {
    steps.then(tensor_collective(linear.name + " output all-reduce", TransferKind::kAllReduce, work,
                                 linear.out));
  }
}

void row_backward(StepList& steps, const LayerWork& work, const Linear& linear) {
  sum_bias_gradient(steps, work, linear, work.row_tokens(), steps.cursor());
  if (work.sp) {
    steps.then(tensor_collective(linear.name + " gradient all-gather", TransferKind::kAllGather,
                                 work, linear.out));
  }
  local_backward(steps, work, linear, work.tokens());
}

void local_backward(StepList& steps, const LayerWork& work, const Linear& linear,
                    std::int64_t rows) {
  const std::size_t gradient = steps.cursor();
  steps.then(data_gradient(linear.name, linear.precision, shape_of(linear, rows)));
  add_weight_gradient(steps, work, linear, rows, {gradient});
}

}  // namespace orrery
