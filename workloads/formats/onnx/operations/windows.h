// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

#include "workloads/formats/onnx/operation.h"

namespace orrery::onnx {

/// How a window moves over the positions of a tensor of samples x channels x positions.
struct Windows {
  Dims kernel, strides, dilations;
  Dims pads;  ///< before each dimension, then behind each

  std::int64_t positions() const { return elements_of(kernel); }
};

/// Windows as attributes say, of a kernel whose sizes are known.
Windows windows_of(const Operation& op, const Dims& kernel);

/// Positions where the windows come to lie: floor((size + pads - reach) / stride) + 1 each, with
/// `ceil_mode` rounded up; `auto_pad` SAME: size / stride rounded up.
Dims positions_of(const Operation& op, const Windows& windows);

}  // namespace orrery::onnx
