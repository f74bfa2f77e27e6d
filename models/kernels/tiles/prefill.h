// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "models/kernels/device/family.h"

namespace orrery {

/// Attention over a prompt, tile by tile: a block of query rows of one head meets the keys that it
/// sees step by step. Tiles are handed out head after head, rows ascending, each multiprocessor
/// taking the next when it is free; causal tiles get longer towards the end of a head, so the tail
/// is that of dispatch_tail.h. Before the core runs a kernel that rotates queries and keys and
/// writes the cache, as serving engines time it.
///
/// Time of a tile: a fixed part, its bytes over a share of the memory, and steps of
/// `matrix_step` x (ideal time of the two products) + `exp_step` x (ideal time of the
/// exponentials). Long kernels lose clock to the power limit once they keep the tensor cores busy.
class PrefillFamily final : public KernelFamily {
 public:
  const std::vector<ParameterInfo>& parameters() const override;
  std::vector<double> priors(const AcceleratorConfig& accelerator,
                             Precision precision) const override;
  KernelTime time(const Kernel& kernel, const AcceleratorConfig& accelerator,
                  const double* values) const override;
  std::optional<ResidualPoint> residual_point(const Kernel& kernel,
                                              const AcceleratorConfig& on) const override;
  /// Tiles get more of a memory by the root of its bandwidth a unit; exponentials follow
  /// compute.special.
  std::vector<double> transferred(const std::vector<double>& values, const AcceleratorConfig& from,
                                  const AcceleratorConfig& to, Precision precision) const override;
  /// A kind of block for each row of tiles, in the order of a head; heads repeat it.
  std::optional<BlockPlan> blocks(const Kernel& kernel, const AcceleratorConfig& accelerator,
                                  const double* values) const override;
};

}  // namespace orrery
