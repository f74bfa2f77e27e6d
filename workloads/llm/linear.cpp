// SPDX-License-Identifier: Apache-2.0
#include "workloads/llm/linear.h"

#include <utility>

#include "workloads/llm/kernels.h"

namespace orrery {
namespace {

GemmShape shape_of(const Linear& linear, std::int64_t rows) {
  return {.m = rows, .n = linear.out, .k = linear.in};
}

/// The input of a product, where nobody before has quantised it. In fp8 checkpoints bring the scale
/// of a tensor, or rows have scales of their own: one pass either way (vLLM's
/// static_scaled_fp8_quant, SGLang's sgl_per_token_quant_fp8, TensorRT-LLM's
/// static_quantize_e4m3_per_tensor). Tables of products find the maximum of the tensor first.
void quantise_input(StepList& steps, const LayerWork& work, const Linear& linear) {
  if (!work.quantises_apart || element_bytes(linear.precision) >= 2) return;
  const auto kernel =
      linear.precision == Precision::kFp8 ? quantize_by_known_scale : quantize;
  steps.then(
      kernel(linear.name + " input quantisation", linear.precision, work.tokens(), linear.in));
}

}  // namespace

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
  }
}

void column_backward(StepList& steps, const LayerWork& work, const std::vector<Linear>& linears,
                     std::int64_t width) {
  const std::string& name = linears.front().name;
  const std::size_t gradient = steps.cursor();
  std::size_t input = StepList::kStart;
  if (work.sp) {
    input = steps.for_weights(
        tensor_collective(name + " input all-gather again", TransferKind::kAllGather, work, width),
        {gradient});
  }
  for (const Linear& linear : linears) {
    steps.then(data_gradient(linear.name, linear.precision, shape_of(linear, work.tokens())));
  }
  if (work.tp > 1) {
    const auto kind = work.sp ? TransferKind::kReduceScatter : TransferKind::kAllReduce;
    const std::string verb = work.sp ? "reduce-scatter" : "all-reduce";
    steps.then(tensor_collective(name + " dgrad " + verb, kind, work, width));
  }
  for (const Linear& linear : linears) {
    steps.for_weights(
        weight_gradient(linear.name, linear.precision, shape_of(linear, work.tokens())),
        {input, gradient});
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
  if (work.sp) {
    steps.then(tensor_collective(linear.name + " gradient all-gather", TransferKind::kAllGather,
                                 work, linear.out));
  }
  local_backward(steps, linear, work.tokens());
}

void local_backward(StepList& steps, const Linear& linear, std::int64_t rows) {
  const std::size_t gradient = steps.cursor();
  steps.then(data_gradient(linear.name, linear.precision, shape_of(linear, rows)));
  steps.for_weights(weight_gradient(linear.name, linear.precision, shape_of(linear, rows)),
                    {gradient});
}

}  // namespace orrery
