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

  std::unique_ptr<KernelPrices> on(const AcceleratorConfig& accelerator) const override;
  std::string calibration() const override { return others_->calibration(); }

 private:
  class Prices;
  using Key = std::array<std::int64_t, 6>;  ///< class, precision, batch, m, n, k
  static Key key_of(const Kernel& kernel);
  const MeasuredKernel* find(const Kernel& kernel) const;

  std::unique_ptr<KernelModel> others_;
  std::map<Key, std::vector<MeasuredKernel>> measured_;
};

}  // namespace orrery
