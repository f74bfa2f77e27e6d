// SPDX-License-Identifier: Apache-2.0
// Parts of tensors, and tensors put together: copies of what they make. A runtime may leave some
// of them out (views into buffers); they are counted.
#include <fmt/core.h>

#include <algorithm>
#include <limits>
#include <numeric>
#include <utility>

#include "workloads/base/real.h"
#include "workloads/formats/onnx/operation.h"

namespace orrery::onnx {
namespace {

/// Result 0, of a kernel that writes it and reads as much.
Value& copied(Operation& op, Dims dims) {
  Value& value = op.result(0, std::move(dims), op.in(0).type);
  op.stream(KernelClass::kElementwise, Fusing::kMoves, 0).reads = {
      {op.id(0), std::min(op.use(0).bytes, op.use_of_result(0).bytes)}};
  return value;
}

/// 0, 1, 2 ...: all dimensions of so many.
Dims all_axes(std::size_t count) {
  Dims axes(count);
  std::iota(axes.begin(), axes.end(), 0);
  return axes;
}

void concat(Operation& op) {
  Dims dims = op.in(0).dims;
  if (dims.empty()) op.refuse("scalars cannot be put behind each other");
  const auto axis = static_cast<std::size_t>(op.axis(op.integer("axis", 1), op.rank(0)));
  std::vector<double> values = op.in(0).values;
  bool known = op.in(0).known;
  for (std::size_t i = 1; i < op.inputs(); ++i) {
    Dims other = op.in(i).dims;
    if (other.size() != dims.size())
      op.refuse(fmt::format("{} and {} do not go together", text_of(dims), text_of(other)));
    dims[axis] += other[axis];
    known = known && op.in(i).known && values.size() <= kMostValues;
    if (known) values.insert(values.end(), op.in(i).values.begin(), op.in(i).values.end());
    other[axis] = dims[axis];
    if (other != dims)
      op.refuse(fmt::format("{} and {} do not go together", text_of(other), text_of(dims)));
    if (dims[axis] > kMostElements) op.refuse("its result has more than 2^53 elements");
  }
  Value& value = op.result(0, dims, op.in(0).type);
  if (known && dims.size() == 1 && values.size() <= kMostValues) value.know(std::move(values));
  op.stream(KernelClass::kElementwise, Fusing::kMoves, 0);
}

void split(Operation& op) {
  const Dims from = op.in(0).dims;
  if (from.empty()) op.refuse("its input is a scalar");
  const auto axis = static_cast<std::size_t>(op.axis(op.integer("axis"), op.rank(0)));
  const std::size_t count = op.node().outputs.size();
  const bool told = op.opset() >= 13 ? op.has(1) : op.given("split");
  Dims sizes = !told ? Dims() : op.opset() >= 13 ? op.integers_of(1) : op.integers("split");
  if (!told) {
    const auto parts = static_cast<std::int64_t>(count);
    const std::int64_t each = (from[axis] + parts - 1) / parts;
    for (std::int64_t i = 0; i < parts; ++i)
      sizes.push_back(std::clamp<std::int64_t>(from[axis] - i * each, 0, each));
  }
  if (sizes.size() != count)
    op.refuse(fmt::format("it has {} sizes for {} results", sizes.size(), count));
  std::size_t at = 0;
  for (std::size_t i = 0; i < count; ++i) {
    Dims dims = from;
    dims[axis] = sizes[i];
    Value& value = op.result(i, dims, op.in(0).type);
    const auto part = static_cast<std::size_t>(sizes[i]);
    if (part > static_cast<std::size_t>(from[axis]) - at)
      op.refuse("its parts are more than its input");
    if (op.knows(0) && from.size() == 1) {
      const auto begin = op.in(0).values.begin() + static_cast<std::ptrdiff_t>(at);
      value.know({begin, begin + static_cast<std::ptrdiff_t>(part)});
    }
    at += part;
  }
  op.stream(KernelClass::kElementwise, Fusing::kAlone, 0).reads = {op.use(0)};
}

/// One dimension of a Slice.
struct Cut {
  std::int64_t start = 0, step = 1, count = 0;
};

Cut cut_of(const Operation& op, std::int64_t size, std::int64_t start, std::int64_t end,
           std::int64_t step) {
  if (step == 0 || step == std::numeric_limits<std::int64_t>::min())
    op.refuse(fmt::format("its step is {}", step));
  const auto from_behind = [size](std::int64_t at) {
    return at < 0 && at >= -size - 1 ? at + size : at;
  };
  if (step > 0) {
    start = std::clamp<std::int64_t>(start < 0 ? from_behind(start) : start, 0, size);
    end = std::clamp<std::int64_t>(end < 0 ? from_behind(end) : end, 0, size);
    const std::int64_t room = std::max<std::int64_t>(0, end - start);
    return {start, step, room == 0 ? 0 : (room - 1) / step + 1};
  }
  start = std::clamp<std::int64_t>(start < 0 ? from_behind(start) : start, -1, size - 1);
  end = end < -size ? -1 : std::clamp<std::int64_t>(end < 0 ? end + size : end, -1, size - 1);
  const std::int64_t room = std::max<std::int64_t>(0, start - end);
  return {start, step, room == 0 ? 0 : (room - 1) / -step + 1};
}

void slice(Operation& op) {
  const bool attributes = op.opset() < 10;
  const Dims starts = attributes ? op.integers("starts") : op.integers_of(1);
  const Dims ends = attributes ? op.integers("ends") : op.integers_of(2);
  Dims axes = attributes ? op.integers("axes") : op.has(3) ? op.integers_of(3) : Dims();
  const Dims steps = !attributes && op.has(4) ? op.integers_of(4) : Dims(starts.size(), 1);
  if (axes.empty()) axes = all_axes(starts.size());
  if (ends.size() != starts.size() || axes.size() != starts.size() || steps.size() != starts.size())
    op.refuse("its starts, ends, axes and steps are not as many");
  Dims dims = op.in(0).dims;
  Cut cut;
  for (std::size_t i = 0; i < axes.size(); ++i) {
    if (dims.empty()) op.refuse("its input is a scalar");
    std::int64_t& size = dims[static_cast<std::size_t>(op.axis(axes[i], op.rank(0)))];
    cut = cut_of(op, size, starts[i], ends[i], steps[i]);
    size = cut.count;
  }
  Value& value = copied(op, dims);
  if (!op.knows(0) || dims.size() != 1 || axes.size() != 1) return;
  value.known = true;
  for (std::int64_t i = 0; i < cut.count; ++i)
    value.values.push_back(op.in(0).values[static_cast<std::size_t>(cut.start + i * cut.step)]);
}

void pad(Operation& op) {
  const Dims pads = op.opset() < 11 ? op.integers("pads") : op.integers_of(1);
  Dims dims = op.in(0).dims;
  const Dims axes = op.has(3) ? op.integers_of(3) : all_axes(dims.size());
  if (pads.size() != 2 * axes.size()) op.refuse("its pads are not two for each dimension");
  for (std::size_t i = 0; i < axes.size(); ++i) {
    const std::int64_t before = pads[i], behind = pads[axes.size() + i];
    if (std::max(before, behind) > kMostElements || std::min(before, behind) < -kMostElements)
      op.refuse("its result has more than 2^53 elements");
    dims[static_cast<std::size_t>(op.axis(axes[i], op.rank(0)))] += before + behind;
  }
  copied(op, std::move(dims));
}

void expand(Operation& op) {
  const Dims dims = broadcast(op, op.in(0).dims, op.integers_of(1));
  Value& value = copied(op, dims);
  if (op.knows(0) && op.in(0).values.size() == 1 && are_few(dims))
    value.know(
        std::vector<double>(static_cast<std::size_t>(elements_of(dims)), op.in(0).values[0]));
}

void tile(Operation& op) {
  const Dims repeats = op.integers_of(1);
  Dims dims = op.in(0).dims;
  if (repeats.size() != dims.size()) op.refuse("its repeats are not one for each dimension");
  for (std::size_t i = 0; i < dims.size(); ++i) {
    if (repeats[i] < 0 || (dims[i] > 0 && repeats[i] > kMostElements / dims[i]))
      op.refuse(fmt::format("it repeats a dimension {} times", repeats[i]));
    dims[i] *= repeats[i];
  }
  copied(op, std::move(dims));
}

void transpose(Operation& op) {
  const Dims from = op.in(0).dims;
  Dims order = op.integers("perm");
  if (order.empty()) {
    order = all_axes(from.size());
    std::reverse(order.begin(), order.end());
  }
  const Dims axes = all_axes(from.size());
  if (!std::is_permutation(order.begin(), order.end(), axes.begin(), axes.end()))
    op.refuse("perm is no order of its dimensions");
  Dims dims, moved;  // the second: dimensions of more than one element
  for (const std::int64_t i : order) {
    dims.push_back(from[static_cast<std::size_t>(i)]);
    if (dims.back() != 1) moved.push_back(i);
  }
  if (std::is_sorted(moved.begin(), moved.end())) {  // memory stays in order
    op.view(dims);
  } else {
    copied(op, dims).narrow = op.in(0).narrow;
  }
}

/// Elements in another order: depth to space, and what else keeps their number.
void blocks(Operation& op) {
  Dims dims = op.in(0).dims;
  const std::int64_t block = op.integer("blocksize", 1);
  const bool to_space = op.node().op == "DepthToSpace";
  constexpr std::int64_t kMostBlock = 1 << 20;
  if (dims.size() != 4 || block < 1 || block > kMostBlock) op.refuse("its input has no blocks");
  dims[1] = to_space ? dims[1] / (block * block) : dims[1] * block * block;
  for (const std::size_t i : {2U, 3U}) dims[i] = to_space ? dims[i] * block : dims[i] / block;
  copied(op, std::move(dims));
}

void keep_shape(Operation& op) { copied(op, op.in(0).dims); }

const RegisterRules kSlices("a copy", {
                                          {concat, {"Concat"}},
                                          {split, {"Split"}},
                                          {slice, {"Slice"}},
                                          {pad, {"Pad"}},
                                          {expand, {"Expand"}},
                                          {tile, {"Tile"}},
                                          {transpose, {"Transpose"}},
                                          {blocks, {"DepthToSpace", "SpaceToDepth"}},
                                          {keep_shape, {"ReverseSequence", "Trilu"}},
                                      });

}  // namespace
}  // namespace orrery::onnx
