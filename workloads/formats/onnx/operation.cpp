// SPDX-License-Identifier: Apache-2.0
#include "workloads/formats/onnx/operation.h"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

#include "sim/config/diagnostics.h"
#include "workloads/base/real.h"
#include "workloads/formats/base/whole_number.h"

namespace orrery::onnx {

const Value& Operation::in(std::size_t i) const {
  if (!has(i)) refuse(fmt::format("input {} is missing", i));
  return values_[inputs_[i]];
}

Dims Operation::integers_of(std::size_t i) const {
  const Value& value = in(i);
  if (!value.known)
    unknown(fmt::format("its shape follows from values of '{}', which only a run can tell",
                        node_.inputs[i]));
  Dims integers;
  integers.reserve(value.values.size());
  for (const double number : value.values) integers.push_back(whole_number(number));
  return integers;
}

std::int64_t Operation::axis(std::int64_t axis, std::int64_t rank) const {
  const std::int64_t least = rank == 0 ? -1 : -rank, most = rank == 0 ? 0 : rank - 1;
  if (axis < least || axis > most)
    refuse(fmt::format("axis {} of a tensor of {} dimensions", axis, rank));
  return axis < 0 ? axis + std::max<std::int64_t>(rank, 1) : axis;
}

Dims Operation::axes(std::size_t i, std::int64_t rank) const {
  Dims axes = has(i) ? integers_of(i) : integers("axes");
  for (std::int64_t& one : axes) one = axis(one, rank);
  std::sort(axes.begin(), axes.end());
  axes.erase(std::unique(axes.begin(), axes.end()), axes.end());
  return axes;
}

Value& Operation::result(std::size_t i, Dims dims, DataType type) {
  if (const std::string mistake = mistake_of(dims); !mistake.empty())
    refuse("its result has " + mistake);
  if (i >= results.size()) results.resize(i + 1);
  Value& value = results[i] ? *results[i] : results[i].emplace();
  value.dims = std::move(dims);
  value.type = type;
  return value;
}

Value& Operation::view(Dims dims) {
  const Value from = in(0);
  Value& value = result(0, std::move(dims), from.type);
  if (elements_of(value.dims) != elements_of(from.dims))
    refuse(
        fmt::format("{} has not as many elements as {}", text_of(from.dims), text_of(value.dims)));
  value.storage = from.storage;
  value.narrow = from.narrow;
  value.known = from.known;
  value.values = from.values;
  value.constant = from.constant;
  return value;
}

Lowered& Operation::stream(KernelClass kind, Fusing fusing, double flops) {
  const Value& value = *results.front();
  Lowered& lowered = kernel(kind);
  lowered.fusing = fusing;
  lowered.elements = elements_of(value.dims);
  Kernel& kernel = lowered.kernel;
  kernel.n = value.dims.empty() ? 1 : std::max<std::int64_t>(1, value.dims.back());
  kernel.m = std::max<std::int64_t>(1, lowered.elements / kernel.n);
  kernel.precision = format_.of(value.type);
  kernel.vector_flops = Flops(real(lowered.elements) * flops);
  return lowered;
}

Lowered& Operation::stream_input(double flops) {
  Lowered& lowered = stream(KernelClass::kElementwise, Fusing::kAlone, 0);
  lowered.kernel.vector_flops = Flops(real(elements_of(in(0).dims)) * flops);
  return lowered;
}

ValueUse Operation::use(std::size_t i, bool narrow) const {
  const Value& value = in(i);
  if (!narrow || value.narrow == kNoValue) return {inputs_[i], bytes(value)};
  return {value.narrow, bytes(values_[value.narrow])};
}

Rule as_input(KernelClass kind, Fusing fusing, double flops) {
  return [=](Operation& op) {
    op.result(0, op.in(0).dims, op.in(0).type);
    op.stream(kind, fusing, flops);
  };
}

Dims broadcast(const Operation& op, const Dims& a, const Dims& b) {
  Dims dims(std::max(a.size(), b.size()));
  for (std::size_t i = 0; i < dims.size(); ++i) {
    const std::int64_t left = i < a.size() ? a[a.size() - 1 - i] : 1;
    const std::int64_t right = i < b.size() ? b[b.size() - 1 - i] : 1;
    if (left != right && left != 1 && right != 1)
      op.refuse(fmt::format("shapes {} and {} do not go together", text_of(a), text_of(b)));
    dims[dims.size() - 1 - i] = left == 1 ? right : left;
  }
  return dims;
}

}  // namespace orrery::onnx
