// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "sim/machine/kernel_model.h"

namespace orrery {

/// The p-norm roofline: t = launch + (t_matrix^p + t_vector^p + t_memory^p + t_host^p)^(1/p), each
/// term work over the achievable rate (peak times efficiency). p = infinity is the textbook
/// roofline, p = 1 no overlap at all.
class RooflineModel final : public KernelModel {
 public:
  KernelCost cost(const Kernel& kernel, const AcceleratorConfig& accelerator) const override;
};

}  // namespace orrery
