// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <functional>
#include <numeric>
#include <optional>
#include <utility>

#include "workloads/base/real.h"
#include "workloads/formats/onnx/operation.h"
#include "workloads/ops/kernels.h"

namespace orrery::onnx {
namespace {

/// A few known numbers taken together, sizes mostly; nothing for reductions that shapes do not
/// need.
std::optional<double> reduced(const std::string& op, const std::vector<double>& from) {
  if (op == "ReduceProd")
    return std::accumulate(from.begin(), from.end(), 1.0, std::multiplies<>());
  if (op == "ReduceSum") return std::accumulate(from.begin(), from.end(), 0.0);
  if (op == "ReduceMax") return *std::max_element(from.begin(), from.end());
  if (op == "ReduceMin") return *std::min_element(from.begin(), from.end());
  return std::nullopt;
}

void reduce(Operation& op) {
  const Dims from = op.in(0).dims;
  Dims axes = op.axes(1, op.rank(0));
  if (axes.empty() && op.integer("noop_with_empty_axes") != 0) {
    op.view(from);
    return;
  }
  if (axes.empty()) {
    axes.resize(from.size());
    std::iota(axes.begin(), axes.end(), 0);
  }
  Dims dims;
  for (std::size_t i = 0; i < from.size(); ++i) {
    const bool summed = std::binary_search(axes.begin(), axes.end(), static_cast<std::int64_t>(i));
    if (!summed) dims.push_back(from[i]);
    if (summed && op.integer("keepdims", 1) != 0) dims.push_back(1);
  }
  Value& value = op.result(0, std::move(dims), op.in(0).type);
  if (op.knows(0) && elements_of(value.dims) == 1 && !op.in(0).values.empty()) {
    const auto one = reduced(op.node().op, op.in(0).values);
    if (one) value.values = {*one};
    value.known = one.has_value();
  }
  Lowered& lowered = op.stream_input(1);
  const bool rows = axes.size() == 1 && axes[0] == op.rank(0) - 1;
  if (!rows) return;
  lowered.fusing = Fusing::kRows;
  lowered.elements = elements_of(from);
  lowered.width = std::max<std::int64_t>(1, from.back());
}

/// The place of the largest or smallest along an axis.
void arg(Operation& op) {
  Dims dims = op.in(0).dims;
  const auto axis = static_cast<std::ptrdiff_t>(op.axis(op.integer("axis"), op.rank(0)));
  if (!dims.empty()) {
    if (op.integer("keepdims", 1) != 0) {
      dims[static_cast<std::size_t>(axis)] = 1;
    } else {
      dims.erase(dims.begin() + axis);
    }
  }
  op.result(0, std::move(dims), DataType::kInt64);
  op.stream_input(1);
}

/// A radix sort's first pass over all, and the chosen ones: a comparison each.
void top_k(Operation& op) {
  Dims dims = op.in(0).dims;
  const std::int64_t axis = op.axis(op.integer("axis", -1), op.rank(0));
  const Dims k = op.opset() < 10 ? Dims{op.integer("k")} : op.integers_of(1);
  if (k.size() != 1 || dims.empty()) op.refuse("it does not say how many it chooses");
  dims[static_cast<std::size_t>(axis)] = k[0];
  op.result(1, dims, DataType::kInt64);
  op.result(0, std::move(dims), op.in(0).type);
  op.stream_input(1);
}

/// As many results as there could be: which, only the values tell.
void non_zero(Operation& op) {
  const Dims& dims = op.in(0).dims;
  op.result(0,
            {static_cast<std::int64_t>(std::max<std::size_t>(1, dims.size())), elements_of(dims)},
            DataType::kInt64);
  op.stream(KernelClass::kElementwise, Fusing::kAlone, 1).kernel.host_waits = true;
}

void unique(Operation& op) {
  const Dims all = {elements_of(op.in(0).dims)};
  op.result(0, op.given("axis") ? op.in(0).dims : all, op.in(0).type);
  for (std::size_t i = 1; i < op.node().outputs.size(); ++i) op.result(i, all, DataType::kInt64);
  op.stream(KernelClass::kElementwise, Fusing::kAlone, 1).kernel.host_waits = true;
}

const RegisterRules kReductions(
    "a reduction",
    {
        {reduce,
         {"ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin", "ReduceProd", "ReduceL1", "ReduceL2",
          "ReduceLogSum", "ReduceLogSumExp", "ReduceSumSquare"}},
        {arg, {"ArgMax", "ArgMin"}},
        {top_k, {"TopK"}},
        {as_input(KernelClass::kElementwise, Fusing::kAlone, 1), {"CumSum"}},
        {non_zero, {"NonZero"}},
        {unique, {"Unique"}},
    });

}  // namespace
}  // namespace orrery::onnx
