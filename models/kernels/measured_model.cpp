// SPDX-License-Identifier: Apache-2.0
#include "models/kernels/measured_model.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "sim/machine/draws.h"
#include "sim/machine/limits.h"

namespace orrery {
namespace {

/// Repeatability of operator tables: within one table the same kernel comes out 1 to 3 % apart.
constexpr double kRepeatability = 0.02;
/// Bytes count as the same within this share: models round routed tokens and padded rows.
constexpr double kSameBytes = 0.01;

/// What has to be equal, apart from the bytes.
Kernel shape_of(Kernel kernel) {
  kernel.name.clear();
  kernel.matrix_flops = kernel.vector_flops = kernel.exponentials = Flops();
  kernel.read = kernel.written = kernel.host = kernel.reuse = Bytes();
  return kernel;
}

bool close(double x, double y) { return std::abs(x - y) <= kSameBytes * std::max(x, y); }

bool same(const Kernel& a, const Kernel& b) {
  // States of as many elements move as many bytes, whatever the recurrence does with them.
  const bool recurrence =
      a.kind != KernelClass::kScan || close(a.vector_flops.base(), b.vector_flops.base());
  return recurrence && close((a.read + a.written).base(), (b.read + b.written).base()) &&
         shape_of(a) == shape_of(b);
}

}  // namespace

MeasuredModel::MeasuredModel(std::unique_ptr<KernelModel> others,
                             const std::vector<MeasuredKernel>& measured)
    : others_(std::move(others)) {
  for (const MeasuredKernel& one : measured) {
    std::vector<MeasuredKernel>& alike = measured_[key_of(one.kernel)];
    const auto known = std::find_if(
        alike.begin(), alike.end(),
        [&one](const MeasuredKernel& other) { return same(one.kernel, other.kernel); });
    if (known == alike.end()) {
      alike.push_back(one);
    } else {
      known->time_us = std::min(known->time_us, one.time_us);
    }
  }
}

MeasuredModel::Key MeasuredModel::key_of(const Kernel& kernel) {
  return {static_cast<std::int64_t>(kernel.kind),
          static_cast<std::int64_t>(kernel.precision),
          kernel.batch,
          kernel.m,
          kernel.n,
          kernel.k};
}

const MeasuredKernel* MeasuredModel::find(const Kernel& kernel) const {
  const auto alike = measured_.find(key_of(kernel));
  if (alike == measured_.end()) return nullptr;
  for (const MeasuredKernel& one : alike->second)
    if (same(one.kernel, kernel)) return &one;
  return nullptr;
}

/// Prices of the measured kernels, and of others by the other model.
class MeasuredModel::Prices final : public KernelPrices {
 public:
  Prices(const MeasuredModel& model, const AcceleratorConfig& accelerator)
      : model_(model), accelerator_(accelerator), others_(model.others_->on(accelerator)) {}

  KernelCost cost(const Kernel& kernel) override {
    KernelCost cost = others_->cost(kernel);
    const MeasuredKernel* measured = model_.find(kernel);
    if (measured == nullptr) return cost;
    // Launch and traffic are the other model's: a time alone does not tell them.
    cost.duration = to_picoseconds(Seconds(measured->time_us / 1e6));
    cost.launch = std::min(cost.launch, cost.duration);
    cost.provenance = Provenance::kMeasured;
    cost.bound = limit_of(kernel, cost, accelerator_).bound;
    return cost;
  }

  std::vector<double> draws(const Kernel& kernel, std::int64_t seed) override {
    if (model_.find(kernel) == nullptr) return others_->draws(kernel, seed);
    std::string what =
        accelerator_.id + "/" + to_string(kernel.kind) + "/" + to_string(kernel.precision);
    for (const std::int64_t part : key_of(kernel)) what.append("/").append(std::to_string(part));
    std::vector<double> factors = normal_draws(seed, what + "/measured");
    for (double& factor : factors) factor = std::exp(kRepeatability * factor);
    return factors;
  }

 private:
  const MeasuredModel& model_;
  const AcceleratorConfig& accelerator_;
  std::unique_ptr<KernelPrices> others_;
};

std::unique_ptr<KernelPrices> MeasuredModel::on(const AcceleratorConfig& accelerator) const {
  return std::make_unique<Prices>(*this, accelerator);
}

}  // namespace orrery
