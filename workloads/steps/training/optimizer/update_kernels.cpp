// SPDX-License-Identifier: Apache-2.0
#include "workloads/steps/training/optimizer/update_kernels.h"

#include <cmath>
#include <cstdint>
#include <utility>

namespace orrery {

Kernel optimizer_kernel(std::string name, double elements, StreamCost per_element) {
  return stream(std::move(name), KernelClass::kOptimizer,
                static_cast<std::int64_t>(std::ceil(elements)), 1, per_element);
}

UpdateBytes update_bytes(Precision precision, const TrainingSoftware& software,
                         const OptimizerStates& states) {
  if (states.master == MasterWeights::kFp32) return {};
  return {software.gradient_bytes(precision), training_bytes(precision)};
}

Kernel clipping_kernel(double elements, double gradient) {
  return optimizer_kernel("gradient clipping", elements, {gradient, gradient, 2});
}

Kernel adam_kernel(double elements, UpdateBytes bytes, const OptimizerStates& states) {
  const double moments = moment_bytes(states.momentum) + moment_bytes(states.variance);
  return optimizer_kernel("adam", elements,
                          {bytes.gradient + bytes.weight + moments, bytes.weight + moments, 12});
}

Kernel sgd_kernel(double elements, UpdateBytes bytes, const OptimizerStates& states) {
  const double momentum = moment_bytes(states.momentum);
  return optimizer_kernel("sgd", elements,
                          {bytes.gradient + bytes.weight + momentum, bytes.weight + momentum, 4});
}

Kernel weight_cast(double elements, Precision precision, double gradient,
                   const OptimizerStates& states) {
  const double weight = training_bytes(precision);
  const bool casts =
      weight < element_bytes(Precision::kFp32) && states.master == MasterWeights::kFp32;
  return optimizer_kernel("weight cast", elements,
                          {casts ? 4.0 : 0, (casts ? weight : 0) + gradient, 0});
}

double optimizer_bytes(OptimizerKind kind, Precision precision, const OptimizerStates& states) {
  const bool casts = training_bytes(precision) < element_bytes(Precision::kFp32) &&
                     states.master == MasterWeights::kFp32;
  const double variance = kind == OptimizerKind::kAdam ? moment_bytes(states.variance) : 0;
  return (casts ? 4 : 0) + moment_bytes(states.momentum) + variance;
}

std::vector<Kernel> gradient_preparation(double elements, Precision precision,
                                         const TrainingSoftware& software, bool clipping,
                                         const OptimizerStates& states) {
  const double gradient = update_bytes(precision, software, states).gradient;
  StreamCost cost;
  const auto add = [&cost](StreamCost more) {
    cost = {cost.read + more.read, cost.written + more.written, cost.flops + more.flops};
  };
  if (software.gradient_bytes(precision) < gradient) add({training_bytes(precision), gradient, 0});
  if (precision == Precision::kFp16) add({gradient, gradient, 2});
  if (clipping) add({gradient, 0, 2});
  if (cost.read == 0) return {};
  return {optimizer_kernel("gradient preparation", elements, cost)};
}

std::vector<Kernel> optimizer_kernels(double elements, Precision precision,
                                      const TrainingSoftware& software) {
  const UpdateBytes usual;
  std::vector<Kernel> kernels = gradient_preparation(elements, precision, software, true);
  kernels.push_back(clipping_kernel(elements, usual.gradient));
  kernels.push_back(adam_kernel(elements, usual, {}));
  kernels.push_back(weight_cast(elements, precision, software.gradient_bytes(precision), {}));
  return kernels;
}

}  // namespace orrery
