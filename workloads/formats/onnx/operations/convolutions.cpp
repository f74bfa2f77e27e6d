// SPDX-License-Identifier: Apache-2.0
// Convolutions: implicit products, whose rows are positions of all samples and whose columns are
// channels of results.
#include <fmt/core.h>

#include <string>
#include <utility>

#include "workloads/base/real.h"
#include "workloads/formats/onnx/operations/products.h"
#include "workloads/formats/onnx/operations/windows.h"

namespace orrery::onnx {
namespace {

struct Places {
  std::size_t input = 0, weight = 1, bias = 2;
};

/// Sizes of the weights: channels of results (of inputs, where transposed), channels of a group on
/// the other side, the window.
Dims window_of(const Operation& op, const Dims& weight) {
  if (weight.size() < 3) op.refuse(fmt::format("weights {} have no window", text_of(weight)));
  return {weight.begin() + 2, weight.end()};
}

[[noreturn]] void refuse_groups(const Operation& op, std::int64_t groups, const Dims& input,
                                const Dims& weight) {
  op.refuse(fmt::format("{} groups do not fit {} and weights {}", groups, text_of(input),
                        text_of(weight)));
}

/// A group with one channel shares no operand between results and runs on vector lanes.
void convolution_kernel(Operation& op, const Product& product, const Places& at, bool depthwise) {
  Kernel& kernel = multiply_kernel(op, product, at.input, at.weight).kernel;
  kernel.kind = KernelClass::kConvolution;
  if (depthwise) std::swap(kernel.matrix_flops, kernel.vector_flops);
  if (op.has(at.bias)) kernel.vector_flops += Flops(real(elements_of(op.results[0]->dims)));
}

void convolve(Operation& op, const Places& at, DataType type) {
  const Dims weight = op.in(at.weight).dims, input = op.in(at.input).dims;
  const Windows windows = windows_of(op, window_of(op, weight));
  const std::int64_t groups = op.integer("group", 1);
  if (groups < 1 || input[1] % groups != 0 || weight[0] % groups != 0 ||
      input[1] / groups != weight[1])
    refuse_groups(op, groups, input, weight);
  Dims dims = positions_of(op, windows);
  const std::int64_t rows = input[0] * elements_of(dims);
  dims.insert(dims.begin(), {input[0], weight[0]});
  op.result(0, std::move(dims), type);
  convolution_kernel(op, {groups, rows, weight[0] / groups, weight[1] * windows.positions()}, at,
                     groups > 1 && weight[0] == groups);
}

void conv(Operation& op) { convolve(op, {}, op.in(0).type); }
/// Inputs and weights with their zero points.
void conv_integer(Operation& op) { convolve(op, {0, 1, 99}, DataType::kInt32); }
/// x, its scale and zero point; w, its; those of y; a bias.
void q_linear_conv(Operation& op) { convolve(op, {0, 3, 8}, op.in(7).type); }

/// (size - 1) * stride + output_padding + reach - pads each; every position of the input is
/// multiplied by the whole window.
void conv_transpose(Operation& op) {
  const Dims weight = op.in(1).dims, input = op.in(0).dims;
  const Windows windows = windows_of(op, window_of(op, weight));
  const std::int64_t groups = op.integer("group", 1);
  if (groups < 1 || input[1] % groups != 0 || input[1] != weight[0])
    refuse_groups(op, groups, input, weight);
  const std::size_t count = windows.kernel.size();
  const Dims shape = op.integers("output_shape"), more = op.integers("output_padding");
  const std::string automatic = op.text("auto_pad", "NOTSET");
  Dims dims = {input[0], weight[1] * groups};
  for (std::size_t i = 0; i < count; ++i) {
    const std::int64_t size = input[i + 2], stride = windows.strides[i];
    if (size > 0 && stride > kMostElements / size) op.refuse("its strides are too large");
    const std::int64_t reach = windows.dilations[i] * (windows.kernel[i] - 1) + 1;
    std::int64_t out = (size - 1) * stride + reach - windows.pads[i] - windows.pads[count + i] +
                       (more.size() == count ? more[i] : 0);
    if (automatic == "SAME_UPPER" || automatic == "SAME_LOWER") out = size * stride;
    if (!shape.empty() && shape.size() >= count) out = shape[shape.size() - count + i];
    dims.push_back(out);
  }
  op.result(0, std::move(dims), op.in(0).type);
  const std::int64_t rows = elements_of(input) / std::max<std::int64_t>(1, input[1]);
  convolution_kernel(op, {groups, rows, weight[1] * windows.positions(), weight[0] / groups}, {},
                     groups > 1 && weight[0] == groups && weight[1] == 1);
}

const RegisterRules kConvolutions("a convolution", {
                                                       {conv, {"Conv", "com.microsoft:FusedConv"}},
                                                       {conv_transpose, {"ConvTranspose"}},
                                                       {conv_integer, {"ConvInteger"}},
                                                       {q_linear_conv, {"QLinearConv"}},
                                                   });

}  // namespace
}  // namespace orrery::onnx
