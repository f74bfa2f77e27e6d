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

/// What a product runs in. Where DequantizeLinear has widened both operands, it runs in what they
/// were widened from, as runtimes do it; where only the right one, that one is widened in the loop.
struct ProductFormat {
  Precision precision = Precision::kFp32;
  WeightFormat weights;
  bool narrow_a = false, narrow_b = false;  ///< whether the operand is read as it was before
};
ProductFormat format_of(const Operation& op, std::size_t a, std::size_t b);

/// The kernel of a product of inputs `a` and `b`; reads other inputs too.
void multiply_kernel(Operation& op, const Product& product, std::size_t a, std::size_t b);

}  // namespace orrery::onnx
