// SPDX-License-Identifier: Apache-2.0
// What costs nothing: tensors looked at another way, and arithmetic on shapes.
#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "workloads/base/real.h"
#include "workloads/formats/onnx/operation.h"

namespace orrery::onnx {
namespace {

/// Sizes that a Reshape asks for: 0 keeps that of the input, one -1 takes what is left.
Dims reshaped(const Operation& op, const Dims& from, Dims asked) {
  std::int64_t others = 1;
  std::size_t open = asked.size();
  const bool zeros = op.integer("allowzero") != 0;
  for (std::size_t i = 0; i < asked.size(); ++i) {
    if (asked[i] == 0 && !zeros) {
      if (i >= from.size())
        op.refuse(fmt::format("it keeps dimension {}, of which there is none", i));
      asked[i] = from[i];
    }
    if (asked[i] == -1) {
      if (open != asked.size()) op.refuse("its shape leaves two dimensions open");
      open = i;
    } else if (asked[i] < 0 || (asked[i] > 0 && others > kMostElements / asked[i])) {
      op.refuse(fmt::format("its shape has a dimension of {}", asked[i]));
    } else {
      others *= asked[i];
    }
  }
  if (open != asked.size()) asked[open] = others == 0 ? 0 : elements_of(from) / others;
  return asked;
}

void reshape(Operation& op) {
  const Dims asked = op.opset() < 5 ? op.integers("shape") : op.integers_of(1);
  op.view(reshaped(op, op.in(0).dims, asked));
}

void flatten(Operation& op) {
  const Dims& dims = op.in(0).dims;
  const auto rank = static_cast<std::int64_t>(dims.size());
  std::int64_t axis = op.integer("axis", 1);
  if (axis < -rank || axis > rank) op.refuse(fmt::format("axis {} is none of its own", axis));
  if (axis < 0) axis += rank;
  const auto middle = dims.begin() + static_cast<std::ptrdiff_t>(axis);
  op.view({elements_of({dims.begin(), middle}), elements_of({middle, dims.end()})});
}

void squeeze(Operation& op) {
  const Dims from = op.in(0).dims;
  const bool all = !op.has(1) && !op.given("axes");
  const Dims axes = all ? Dims() : op.axes(1, op.rank(0));
  Dims dims;
  for (std::size_t i = 0; i < from.size(); ++i) {
    const bool named = std::binary_search(axes.begin(), axes.end(), static_cast<std::int64_t>(i));
    if (named && from[i] != 1) op.refuse(fmt::format("dimension {} is not 1", i));
    if (!(named || (all && from[i] == 1))) dims.push_back(from[i]);
  }
  op.view(std::move(dims));
}

void unsqueeze(Operation& op) {
  Dims asked = op.has(1) ? op.integers_of(1) : op.integers("axes");
  constexpr std::size_t kMostAxes = 64;
  if (asked.size() > kMostAxes) op.refuse("it has more than 64 axes");
  const std::int64_t rank = op.rank(0) + static_cast<std::int64_t>(asked.size());
  for (std::int64_t& axis : asked) axis = op.axis(axis, rank);
  std::sort(asked.begin(), asked.end());
  Dims dims = op.in(0).dims;
  for (const std::int64_t axis : asked) {
    if (axis > static_cast<std::int64_t>(dims.size())) op.refuse("its axes stand twice");
    dims.insert(dims.begin() + static_cast<std::ptrdiff_t>(axis), 1);
  }
  op.view(std::move(dims));
}

void identity(Operation& op) { op.view(op.in(0).dims); }

/// In inference everything passes. Its second result says so.
void dropout(Operation& op) {
  op.view(op.in(0).dims);
  if (op.node().outputs.size() > 1) op.result(1, op.in(0).dims, DataType::kBool);
}

/// Result 0 is a list of numbers, or one, that costs nothing.
void tell(Operation& op, DataType type, const std::vector<double>& numbers, bool scalar = false) {
  const Dims dims = scalar ? Dims() : Dims{static_cast<std::int64_t>(numbers.size())};
  op.result(0, dims, type).know(numbers);
  op.free();
}

void shape(Operation& op) {
  const Dims& dims = op.in(0).dims;
  const auto rank = static_cast<std::int64_t>(dims.size());
  const auto bound = [rank](std::int64_t at) {
    return std::clamp<std::int64_t>(at < 0 ? at + rank : at, 0, rank);
  };
  const std::int64_t first = bound(op.integer("start")), last = bound(op.integer("end", rank));
  tell(op, DataType::kInt64, {dims.begin() + first, dims.begin() + std::max(first, last)});
}

void size(Operation& op) { tell(op, DataType::kInt64, {real(elements_of(op.in(0).dims))}, true); }

/// A value in the attributes of the operator.
void constant(Operation& op) {
  if (const Attribute* value = op.find("value"); value != nullptr && value->tensor) {
    op.result(0, value->tensor->dims, value->tensor->type) = value_of(*value->tensor);
    op.free();
  } else if (const Attribute* integer = op.find("value_int")) {
    tell(op, DataType::kInt64, {real(integer->integer)}, true);
  } else if (const Attribute* integers = op.find("value_ints")) {
    tell(op, DataType::kInt64, {integers->integers.begin(), integers->integers.end()});
  } else if (const Attribute* number = op.find("value_float")) {
    tell(op, DataType::kFloat, {number->real}, true);
  } else if (const Attribute* numbers = op.find("value_floats")) {
    tell(op, DataType::kFloat, numbers->reals);
  } else {
    op.result(0, {}, DataType::kString);
    op.free();
  }
}

void constant_of_shape(Operation& op) {
  const Attribute* given = op.find("value");
  const bool tensor = given != nullptr && given->tensor != nullptr;
  Value& value = op.result(0, op.integers_of(0), tensor ? given->tensor->type : DataType::kFloat);
  op.free();
  if (!are_few(value.dims)) return;
  const double fill = tensor && !given->tensor->values.empty() ? given->tensor->values[0] : 0;
  value.know(std::vector<double>(static_cast<std::size_t>(elements_of(value.dims)), fill));
}

void range(Operation& op) {
  for (std::size_t i = 0; i < 3; ++i)
    if (!op.knows(i) || op.in(i).values.empty())
      op.unknown("only a run can tell how long its range is");
  const double first = op.in(0).values[0], end = op.in(1).values[0], step = op.in(2).values[0];
  const double count = step == 0 ? 0 : std::max(0.0, std::ceil((end - first) / step));
  if (!(count <= static_cast<double>(kMostElements)))
    op.refuse("its range has more than 2^53 elements");
  Value& value = op.result(0, {static_cast<std::int64_t>(count)}, op.in(0).type);
  op.free();
  if (count > static_cast<double>(kMostValues)) return;
  value.known = true;
  for (std::size_t i = 0; i < static_cast<std::size_t>(count); ++i)
    value.values.push_back(first + static_cast<double>(i) * step);
}

const RegisterRules kViews("no work of its own", {
                                                     {reshape, {"Reshape"}},
                                                     {flatten, {"Flatten"}},
                                                     {squeeze, {"Squeeze"}},
                                                     {unsqueeze, {"Unsqueeze"}},
                                                     {identity, {"Identity"}},
                                                     {dropout, {"Dropout"}},
                                                     {shape, {"Shape"}},
                                                     {size, {"Size"}},
                                                     {constant, {"Constant"}},
                                                     {constant_of_shape, {"ConstantOfShape"}},
                                                     {range, {"Range"}},
                                                 });

}  // namespace
}  // namespace orrery::onnx
