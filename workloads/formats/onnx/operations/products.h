// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

#include "workloads/formats/onnx/operation.h"

namespace orrery::onnx {

/// `batch` products of m x k by k x n.
struct Product {
  std::int64_t batch = 1, m = 0, n = 0, k = 0;
};

/// The kernel of a product of inputs `a` and `b`; reads other inputs too.
Lowered& multiply_kernel(Operation& op, const Product& product, std::size_t a, std::size_t b);

}  // namespace orrery::onnx
