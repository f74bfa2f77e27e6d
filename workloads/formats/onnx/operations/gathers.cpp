// SPDX-License-Identifier: Apache-2.0
// Elements chosen by indices, written to indices, and images of other sizes.
#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include "workloads/base/real.h"
#include "workloads/formats/onnx/operation.h"

namespace orrery::onnx {
namespace {

/// Reads of the first input as much as it writes, and the indices.
void gather_kernel(Operation& op) {
  const bool rows = op.in(0).dims.size() > 1 && op.integer("axis") == 0 && op.node().op == "Gather";
  Lowered& lowered =
      op.stream(rows ? KernelClass::kEmbedding : KernelClass::kElementwise, Fusing::kAlone, 0);
  const double element = op.use(0).bytes.base() / std::max(1.0, real(elements_of(op.in(0).dims)));
  lowered.reads = {{op.id(0), Bytes(real(lowered.elements) * element)}, op.use(1)};
}

/// Dimension `axis` of the data becomes the shape of the indices.
void gather(Operation& op) {
  const Dims from = op.in(0).dims, indices = op.in(1).dims;
  if (from.empty()) op.refuse("its input is a scalar");
  const auto axis = static_cast<std::ptrdiff_t>(op.axis(op.integer("axis"), op.rank(0)));
  Dims dims(from.begin(), from.begin() + axis);
  dims.insert(dims.end(), indices.begin(), indices.end());
  dims.insert(dims.end(), from.begin() + axis + 1, from.end());
  Value& value = op.result(0, std::move(dims), op.in(0).type);
  if (op.knows(0) && op.knows(1) && from.size() == 1) {
    for (std::int64_t index : op.integers_of(1)) {
      if (index < 0) index += from[0];
      if (index < 0 || index >= from[0])
        op.refuse(fmt::format("index {} of {} elements", index, from[0]));
      value.values.push_back(op.in(0).values[static_cast<std::size_t>(index)]);
    }
    value.known = true;
  }
  gather_kernel(op);
}

void gather_elements(Operation& op) {
  op.result(0, op.in(1).dims, op.in(0).type);
  gather_kernel(op);
}

/// The last dimension of the indices is a place in the data behind `batch_dims`.
void gather_nd(Operation& op) {
  const Dims from = op.in(0).dims, indices = op.in(1).dims;
  const std::int64_t batch = op.integer("batch_dims");
  if (indices.empty() || batch < 0 || batch > op.rank(0)) op.refuse("its indices have no places");
  const std::int64_t taken = batch + indices.back();
  if (indices.back() < 0 || taken > op.rank(0))
    op.refuse("its places have more dimensions than its input");
  Dims dims(indices.begin(), indices.end() - 1);
  dims.insert(dims.end(), from.begin() + static_cast<std::ptrdiff_t>(taken), from.end());
  op.result(0, std::move(dims), op.in(0).type);
  gather_kernel(op);
}

/// Sizes, or scales, whichever is there.
void resize(Operation& op) {
  Dims dims = op.in(0).dims;
  const std::size_t scales = op.opset() < 11 ? 1 : 2;
  const bool sized =
      op.opset() >= 11 && op.has(3) && !op.in(3).dims.empty() && op.in(3).dims[0] > 0;
  const Dims axes = op.given("axes") ? op.integers("axes") : Dims();
  std::vector<double> factors;
  if (op.node().op == "Upsample" && op.opset() < 9) {
    factors = op.find("scales") != nullptr ? op.find("scales")->reals : factors;
  } else if (!sized) {
    if (!op.knows(scales)) op.unknown("only a run can tell its scales");
    factors = op.in(scales).values;
  }
  const Dims sizes = sized ? op.integers_of(3) : Dims();
  const std::size_t count = axes.empty() ? dims.size() : axes.size();
  if ((sized ? sizes.size() : factors.size()) != count)
    op.refuse("its sizes are not one for each dimension");
  for (std::size_t i = 0; i < count; ++i) {
    std::int64_t& size =
        dims[axes.empty() ? i : static_cast<std::size_t>(op.axis(axes[i], op.rank(0)))];
    const double scaled = sized ? real(sizes[i]) : std::floor(real(size) * factors[i]);
    if (!(scaled >= 0 && scaled <= static_cast<double>(kMostElements)))
      op.refuse("its result has an absurd size");
    size = static_cast<std::int64_t>(scaled);
  }
  op.result(0, std::move(dims), op.in(0).type);
  // Four neighbours, a product and a sum each.
  const double flops = op.text("mode", "nearest") == "nearest" ? 0 : 8;
  op.stream(KernelClass::kElementwise, Fusing::kAlone, flops).reads = {op.use(0)};
}

void grid_sample(Operation& op) {
  const Dims& in = op.in(0).dims;
  const Dims& grid = op.in(1).dims;
  if (in.size() < 3 || grid.size() != in.size()) op.refuse("its grid does not fit its input");
  Dims dims = {in[0], in[1]};
  dims.insert(dims.end(), grid.begin() + 1, grid.end() - 1);
  op.result(0, std::move(dims), op.in(0).type);
  op.stream(KernelClass::kElementwise, Fusing::kAlone, 8);
}

void roi_align(Operation& op) {
  const Dims &in = op.in(0).dims, &regions = op.in(1).dims;
  if (in.size() != 4 || regions.empty()) op.refuse("its input has no regions");
  op.result(0, {regions[0], in[1], op.integer("output_height", 1), op.integer("output_width", 1)},
            op.in(0).type);
  op.stream(KernelClass::kElementwise, Fusing::kAlone, 8);
}

void one_hot(Operation& op) {
  Dims dims = op.in(0).dims;
  const Dims depth = op.integers_of(1);
  if (depth.size() != 1) op.refuse("it has no depth");
  const std::int64_t axis = op.axis(op.integer("axis", -1), op.rank(0) + 1);
  dims.insert(dims.begin() + static_cast<std::ptrdiff_t>(axis), depth[0]);
  op.result(0, std::move(dims), op.in(2).type);
  op.stream(KernelClass::kElementwise, Fusing::kAlone, 1);
}

/// As many boxes as could be left: which, only the values tell.
void suppress(Operation& op) {
  const Dims &boxes = op.in(0).dims, &scores = op.in(1).dims;
  if (boxes.size() != 3 || scores.size() != 3) op.refuse("it has no boxes");
  std::int64_t most = scores[2];
  if (op.knows(2) && !op.in(2).values.empty())
    most = std::clamp<std::int64_t>(op.integers_of(2)[0], 0, most);
  if (scores[1] > 0 && most > kMostElements / scores[1]) op.refuse("it has too many boxes");
  op.result(0, {most * scores[1], 3}, DataType::kInt64);
  Lowered& lowered = op.stream(KernelClass::kElementwise, Fusing::kAlone, 0);
  lowered.kernel.vector_flops = Flops(real(elements_of(scores)) * 8);
  lowered.kernel.host_waits = true;
}

/// In place: what is written, where, and what is there where it is added.
const Rule kScatter = as_input(KernelClass::kElementwise, Fusing::kAlone, 0);

const RegisterRules kGathers("elements by indices",
                             {
                                 {gather, {"Gather"}},
                                 {gather_elements, {"GatherElements"}},
                                 {gather_nd, {"GatherND"}},
                                 {kScatter,
                                  {"Scatter", "ScatterElements", "ScatterND", "TensorScatter"}},
                                 {resize, {"Resize", "Upsample"}},
                                 {grid_sample, {"GridSample"}},
                                 {roi_align, {"RoiAlign"}},
                                 {one_hot, {"OneHot"}},
                                 {suppress, {"NonMaxSuppression"}},
                             });

}  // namespace
}  // namespace orrery::onnx
