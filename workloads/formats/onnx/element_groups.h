// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "workloads/formats/onnx/lowered.h"

namespace orrery::onnx {

/// Kernels that go over the same elements become one, as compilers of graphs do it (XLA's loop
/// fusion, TorchInductor, TensorRT's pointwise fusion): functions of each element, sums over rows
/// with what is done to them and to the elements of their rows, and slices and concatenations among
/// these. What lies between them does not leave the chip; an input of several is read once. What
/// would have to wait for itself stays apart.
void group_elements(LoweredModel& model);

}  // namespace orrery::onnx
