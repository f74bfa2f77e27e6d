// SPDX-License-Identifier: Apache-2.0
#include "models/kernels/device/exchange.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "models/kernels/device/array_time.h"

namespace orrery {
namespace {

constexpr double kPartialSum = 4;  ///< bytes of one in fp32

/// A product as bytes of its three faces.
struct Faces {
  double rows = 0, columns = 0, inputs = 0;  ///< lengths that can be cut
  double in = 0, weights = 0, sums = 0;      ///< sizes in bytes
};

Faces faces_of(const Kernel& kernel) {
  const auto m = static_cast<double>(kernel.m), k = static_cast<double>(kernel.k);
  const double columns = static_cast<double>(kernel.n) * static_cast<double>(kernel.batch);
  Faces faces{m, columns, k, 0, 0, 0};
  faces.weights = columns * k * weight_bytes(kernel.precision, kernel.weights);
  faces.in = std::max(0.0, kernel.read.base() - faces.weights);
  faces.sums = m * columns * kPartialSum;
  return faces;
}

/// Bytes that all units receive where each dimension is cut into so many parts.
double received(const Faces& faces, double row_parts, double column_parts, double input_parts) {
  const double inputs = faces.in * column_parts;
  const double weights = row_parts > 1 ? faces.weights * row_parts : 0;
  return inputs + weights + faces.sums * (input_parts - 1);
}

double least_received(const Faces& faces, double units) {
  double least = std::numeric_limits<double>::infinity();
  for (double inputs = 1; inputs <= std::min(units, faces.inputs); inputs *= 2) {
    const double most_columns = std::min(units / inputs, faces.columns);
    for (double columns = 1; columns <= most_columns; columns *= 2) {
      const double rows = std::min(std::max(1.0, std::floor(units / inputs / columns)), faces.rows);
      // Units without a block receive nothing, and their way in lies idle.
      const double busy = rows * columns * inputs / units;
      least = std::min(least, received(faces, rows, columns, inputs) / busy);
    }
  }
  return least;
}

}  // namespace

Bytes exchanged_bytes(const Kernel& kernel, int units) {
  switch (kernel.kind) {
    case KernelClass::kAttentionPrefill:
    case KernelClass::kAttentionDecode:
    case KernelClass::kMlaPrefill:
    case KernelClass::kMlaDecode:
    case KernelClass::kSparse:
    case KernelClass::kEmbedding:
      return kernel.read;
    default:
      return is_product(kernel) ? Bytes(least_received(faces_of(kernel), units)) : Bytes();
  }
}

}  // namespace orrery
