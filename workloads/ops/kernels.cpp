// SPDX-License-Identifier: Apache-2.0
#include "workloads/ops/kernels.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "workloads/base/real.h"

namespace orrery {
namespace {

/// What a grouped product looks like to a cost model: whole experts of equal, rounded up rows.
GemmShape whole(GroupedShape shape) {
  const double experts = std::max(1.0, std::ceil(shape.experts));
  const auto rows = static_cast<std::int64_t>(std::ceil(shape.rows / experts));
  return {.m = std::max<std::int64_t>(1, rows),
          .n = shape.n,
          .k = shape.k,
          .batch = static_cast<std::int64_t>(experts)};
}

Flops grouped_flops(GroupedShape shape) {
  return Flops(2 * shape.rows * real(shape.n) * real(shape.k));
}

}  // namespace

double training_bytes(Precision precision) { return activation_bytes(precision); }

double activation_bytes(Precision precision) {
  return precision == Precision::kFp32 || precision == Precision::kTf32 ? 4 : 2;
}

Kernel matrix_kernel(std::string name, KernelClass kind, Precision precision, GemmShape shape) {
  Kernel kernel;
  kernel.name = std::move(name);
  kernel.kind = kind;
  kernel.precision = precision;
  kernel.batch = shape.batch;
  kernel.m = shape.m;
  kernel.n = shape.n;
  kernel.k = shape.k;
  return kernel;
}

Kernel gemm(std::string name, Precision precision, GemmShape shape) {
  Kernel kernel = matrix_kernel(std::move(name), KernelClass::kGemm, precision, shape);
  const double batch = real(shape.batch), m = real(shape.m), n = real(shape.n), k = real(shape.k);
  kernel.matrix_flops = Flops(2 * batch * m * n * k);
  kernel.read = Bytes(batch * (m * k + k * n) * element_bytes(precision));
  kernel.written = Bytes(batch * m * n * activation_bytes(precision));
  return kernel;
}

double stored_weight_bytes(Precision precision, WeightFormat weights) {
  return weight_bytes(precision, weights);
}

Kernel gemm(std::string name, Precision precision, GemmShape shape, WeightFormat weights) {
  Kernel kernel = gemm(std::move(name), precision, shape);
  const double batch = real(shape.batch), m = real(shape.m), n = real(shape.n), k = real(shape.k);
  kernel.read = Bytes(
      batch * (m * k * element_bytes(precision) + k * n * stored_weight_bytes(precision, weights)));
  kernel.weights = weights;
  return kernel;
}

Kernel data_gradient(const std::string& name, Precision precision, GemmShape forward,
                     WeightFormat weights) {
  std::swap(forward.n, forward.k);
  return gemm(name + " dgrad", precision, forward, weights);
}

Kernel weight_gradient(const std::string& name, Precision precision, GemmShape forward,
                       GradientBuffer buffer) {
  const GemmShape shape{.m = forward.k, .n = forward.n, .k = forward.m, .batch = forward.batch};
  Kernel kernel = gemm(name + " wgrad", precision, shape);
  if (!buffer.product_adds()) return kernel;
  const Bytes gradient(real(shape.batch) * real(shape.m) * real(shape.n) * buffer.bytes);
  kernel.read += gradient;
  kernel.written = gradient;
  return kernel;
}

Kernel gradient_addition(const std::string& name, std::int64_t rows, std::int64_t width,
                         GradientBuffer buffer) {
  const double wide = buffer.widened ? buffer.bytes : 0;
  Kernel kernel = stream(name + " gradient addition", KernelClass::kElementwise, rows, width,
                         {buffer.element + wide + buffer.bytes, wide + buffer.bytes, 1});
  if (buffer.widened) kernel.launches = 2;
  return kernel;
}

Kernel grouped_gemm(std::string name, Precision precision, GroupedShape shape) {
  Kernel kernel =
      matrix_kernel(std::move(name), KernelClass::kGroupedGemm, precision, whole(shape));
  kernel.load = shape.load;
  if (kernel.load.active == 0) {
    const double active = std::max(1e-9, shape.experts);
    kernel.load = even_load(active, shape.rows, std::ceil(active));
  }
  kernel.matrix_flops = grouped_flops(shape);
  kernel.read = Bytes((shape.rows * real(shape.k) + shape.experts * real(shape.n) * real(shape.k)) *
                      element_bytes(precision));
  kernel.written = Bytes(shape.rows * real(shape.n) * activation_bytes(precision));
  return kernel;
}

Kernel grouped_data_gradient(const std::string& name, Precision precision, GroupedShape forward) {
  std::swap(forward.n, forward.k);
  return grouped_gemm(name + " dgrad", precision, forward);
}

Kernel grouped_weight_gradient(const std::string& name, Precision precision, GroupedShape forward,
                               GradientBuffer buffer) {
  GemmShape shape = whole(forward);
  const std::int64_t rows = shape.m;
  shape.m = forward.k;
  shape.k = rows;
  Kernel kernel = matrix_kernel(name + " wgrad", KernelClass::kGroupedGemm, precision, shape);
  kernel.matrix_flops = grouped_flops(forward);
  const double elements = forward.experts * real(forward.n) * real(forward.k);
  const Bytes operands(forward.rows * (real(forward.n) + real(forward.k)) *
                       element_bytes(precision));
  const Bytes gradient(elements * (buffer.product_adds() ? buffer.bytes : buffer.element));
  kernel.read = buffer.product_adds() ? operands + gradient : operands;
  kernel.written = gradient;
  return kernel;
}

Kernel stream(std::string name, KernelClass kind, std::int64_t rows, std::int64_t width,
              StreamCost per_element) {
  Kernel kernel;
  kernel.name = std::move(name);
  kernel.kind = kind;
  kernel.m = rows;
  kernel.n = width;
  const double elements = real(rows) * real(width);
  kernel.vector_flops = Flops(elements * per_element.flops);
  if (kind == KernelClass::kSoftmax) kernel.exponentials = Flops(elements);
  kernel.read = Bytes(elements * per_element.read);
  kernel.written = Bytes(elements * per_element.written);
  return kernel;
}

Kernel elementwise(std::string name, std::int64_t rows, std::int64_t width,
                   StreamCost per_element) {
  return stream(std::move(name), KernelClass::kElementwise, rows, width, per_element);
}

Kernel rms_norm_of(std::string name, std::int64_t rows, std::int64_t width, double bytes) {
  return stream(std::move(name), KernelClass::kNormalization, rows, width,
                {bytes, bytes, vector_cost::kRmsNorm});
}

Kernel norm_gradient(std::string name, std::int64_t rows, std::int64_t width, double bytes) {
  return stream(std::move(name), KernelClass::kNormalization, rows, width,
                {2 * bytes, bytes, vector_cost::kNormBackward});
}

std::vector<Kernel> expert_choice(std::int64_t tokens, std::int64_t columns, std::int64_t chosen,
                                  double bytes) {
  constexpr std::int64_t kMostFused = 16;
  std::vector<Kernel> kernels = {stream("expert choice", KernelClass::kSoftmax, tokens, columns,
                                        {bytes, bytes, vector_cost::kSoftmax})};
  if (chosen <= kMostFused) return kernels;
  for (const char* name : {"expert choice sort", "expert choice widening", "expert choice softmax",
                           "expert choice indices"}) {
    kernels.push_back(
        stream(name, KernelClass::kSoftmax, tokens, chosen, {bytes, bytes, vector_cost::kSoftmax}));
  }
  return kernels;
}

Kernel permute_tokens(std::int64_t tokens, std::int64_t hidden, double copies, double bytes,
                      double payload) {
  return stream("permute", KernelClass::kElementwise, tokens, hidden,
                {std::min(1.0, copies) * bytes, copies * payload, 0});
}

Kernel combine_copies(std::int64_t tokens, std::int64_t hidden, double copies, double bytes,
                      double more) {
  return stream("combine add", KernelClass::kElementwise, tokens, hidden,
                {copies * bytes + more, bytes, 2 * copies});
}

Kernel quantize(std::string name, Precision precision, std::int64_t rows, std::int64_t width) {
  // An element is scaled and rounded.
  Kernel kernel = stream(std::move(name), KernelClass::kQuantize, rows, width,
                         {activation_bytes(precision), element_bytes(precision), 2});
  kernel.precision = precision;
  return kernel;
}

Kernel quantize_by_known_scale(std::string name, Precision precision, std::int64_t rows,
                               std::int64_t width) {
  return stream(std::move(name), KernelClass::kElementwise, rows, width,
                {activation_bytes(precision), element_bytes(precision), 2});
}

Kernel norm(std::string name, Precision precision, NormShape shape) {
  const double bytes = activation_bytes(precision), normed = element_bytes(precision);
  const double flops = shape.bias ? vector_cost::kLayerNorm : vector_cost::kRmsNorm;
  const StreamCost cost = shape.residual ? StreamCost{2 * bytes, bytes + normed, flops + 1}
                                         : StreamCost{bytes, normed, flops};
  return stream(std::move(name), KernelClass::kNormalization, shape.rows, shape.width, cost);
}

Kernel activation(std::string name, Precision precision, std::int64_t rows, std::int64_t width,
                  bool gated) {
  const double bytes = activation_bytes(precision), written = element_bytes(precision);
  const StreamCost cost = gated ? StreamCost{2 * bytes, written, vector_cost::kSilu + 1}
                                : StreamCost{bytes, written, vector_cost::kGelu};
  return stream(std::move(name), KernelClass::kElementwise, rows, width, cost);
}

Kernel cross_entropy(std::string name, Precision precision, std::int64_t rows,
                     std::int64_t vocabulary) {
  return stream(std::move(name), KernelClass::kSoftmax, rows, vocabulary,
                {activation_bytes(precision), 4, vector_cost::kSoftmax});
}

Kernel rotate(std::string name, Precision precision, std::int64_t tokens, std::int64_t width) {
  const double bytes = activation_bytes(precision);
  return stream(std::move(name), KernelClass::kElementwise, tokens, width,
                {bytes, bytes, vector_cost::kRotary});
}

}  // namespace orrery
