// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "sim/machine/kernel_model.h"

namespace orrery {

/// A kernel and how long somebody measured that it takes on the accelerator.
struct MeasuredKernel {
  Kernel kernel;
  double time_us = 0;
};

/// Times of kernels that were measured, and of all others by another model. A measurement counts
/// for kernels of the same class, precision and shape that move the same bytes; of several, the
/// shortest counts.
class MeasuredModel final : public KernelModel {
 public:
  MeasuredModel(std::unique_ptr<KernelModel> others, const std::vector<MeasuredKernel>& measured);

  KernelCost cost(const Kernel& kernel, const AcceleratorConfig& accelerator) const override;
  std::vector<double> draws(const Kernel& kernel, const AcceleratorConfig& accelerator,
                            std::int64_t seed) const override;
  std::string calibration() const override { return others_->calibration(); }

 private:
  using Key = std::array<std::int64_t, 6>;  ///< class, precision, batch, m, n, k
  static Key key_of(const Kernel& kernel);
  const MeasuredKernel* find(const Kernel& kernel) const;

  std::unique_ptr<KernelModel> others_;
  std::map<Key, std::vector<MeasuredKernel>> measured_;
};

}  // namespace orrery
