// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "models/kernels/device/family.h"

namespace orrery {

/// Attention of new tokens over a cache of keys and values. A library has several kernels with
/// rules of its own for which one runs and how it splits a long context, so that the family is
/// several functions, each with its block of parameters (decode_masked.cpp, decode_grouped.cpp,
/// decode_narrow.cpp, decode_dense.cpp). The rules are those of TensorRT-LLM; which of them a
/// device follows is told by its matrix instruction, as for prefill.
///
/// Time of each: launch + p-norm of a unit's work, the wait of the longest block and the traffic,
/// which the L2 keeps a part of from launch to launch.
class DecodeFamily final : public KernelFamily {
 public:
  const std::vector<ParameterInfo>& parameters() const override;
  std::vector<double> priors(const AcceleratorConfig& accelerator,
                             Precision precision) const override;
  KernelTime time(const Kernel& kernel, const AcceleratorConfig& accelerator,
                  const double* values) const override;
  std::optional<ResidualPoint> residual_point(const Kernel& kernel,
                                              const AcceleratorConfig& on) const override;
  /// Blocks by decode_blocks.h: a context is split as the kernel's rule says for the longest of
  /// them.
  std::optional<BlockPlan> blocks(const Kernel& kernel, const AcceleratorConfig& accelerator,
                                  const double* values) const override;
};

}  // namespace orrery
