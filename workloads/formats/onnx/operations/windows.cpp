// SPDX-License-Identifier: Apache-2.0
#include "workloads/formats/onnx/operations/windows.h"

#include <fmt/core.h>

#include <algorithm>
#include <string>

namespace orrery::onnx {
namespace {

constexpr std::int64_t kMostSize = std::int64_t{1} << 40U;

/// An attribute of `count` numbers from `least` on; all `otherwise` where it is not there.
Dims sizes(const Operation& op, const char* name, std::size_t count, std::int64_t otherwise,
           std::int64_t least) {
  Dims given = op.integers(name);
  if (given.empty()) given.assign(count, otherwise);
  if (given.size() != count)
    op.refuse(fmt::format("{} has {} numbers instead of {}", name, given.size(), count));
  for (const std::int64_t size : given)
    if (size < least || size > kMostSize) op.refuse(fmt::format("{} has {}", name, size));
  return given;
}

}  // namespace

Windows windows_of(const Operation& op, const Dims& kernel) {
  const std::size_t dims = kernel.size();
  if (op.in(0).dims.size() != dims + 2)
    op.refuse(fmt::format("a kernel of {} dimensions over {}", dims, text_of(op.in(0).dims)));
  for (const std::int64_t size : kernel)
    if (size < 1 || size > kMostSize) op.refuse("its kernel is " + text_of(kernel));
  return {kernel, sizes(op, "strides", dims, 1, 1), sizes(op, "dilations", dims, 1, 1),
          sizes(op, "pads", 2 * dims, 0, -kMostSize)};
}

Dims positions_of(const Operation& op, const Windows& windows) {
  const std::string automatic = op.text("auto_pad", "NOTSET");
  const bool same = automatic == "SAME_UPPER" || automatic == "SAME_LOWER";
  const bool valid = automatic == "VALID", up = op.integer("ceil_mode") != 0;
  const std::size_t dims = windows.kernel.size();
  Dims positions(dims);
  for (std::size_t i = 0; i < dims; ++i) {
    const std::int64_t size = op.in(0).dims[i + 2], stride = windows.strides[i];
    if (same) {
      positions[i] = (size + stride - 1) / stride;
      continue;
    }
    if (windows.kernel[i] > kMostSize / windows.dilations[i])
      op.refuse("its windows are too large");
    const std::int64_t reach = windows.dilations[i] * (windows.kernel[i] - 1) + 1;
    const std::int64_t before = valid ? 0 : windows.pads[i];
    const std::int64_t behind = valid ? 0 : windows.pads[dims + i];
    const std::int64_t room = size + before + behind - reach;
    if (room < 0)
      op.refuse(fmt::format("a window of {} is larger than its input of {}", reach,
                            size + before + behind));
    positions[i] = (up ? (room + stride - 1) / stride : room / stride) + 1;
    // A window that would begin in the padding behind does not count.
    if (up && (positions[i] - 1) * stride >= size + before) --positions[i];
  }
  return positions;
}

}  // namespace orrery::onnx
