// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "models/kernels/device/family.h"

namespace orrery {

/// A matrix product as a vendor's library runs it: the fastest of a menu of tiles, with or without
/// splitting the summed dimension. A tile is filled, runs its main loop (matrix instructions, loads
/// into shared memory and the latency of a step, whichever holds it up), and writes its results
/// while the next tile computes; waves of tiles follow each other. The memory streams operands
/// beside that, unless they are in the L2: measured tables rotate five copies of the weights and
/// none of the activations. Long products lose clock to the power limit. Weights that are narrower
/// than the operands are widened on the vector lanes beside the matrix instructions; 2:4 sparse
/// ones run at the sparse rate of the device. fp8_block on instructions of warpgroups runs by the
/// rule of block_scaled_gemm.h.
class GemmFamily final : public KernelFamily {
 public:
  const std::vector<ParameterInfo>& parameters() const override;
  std::vector<double> priors(const AcceleratorConfig& accelerator,
                             Precision precision) const override;
  KernelTime time(const Kernel& kernel, const AcceleratorConfig& accelerator,
                  const double* values) const override;
  std::optional<ResidualPoint> residual_point(const Kernel& kernel,
                                              const AcceleratorConfig& on) const override;
  /// A step's latency follows the clock and the work of a unit and clock, an epilogue the memory
  /// bandwidth of a unit; the last wave counts as the schedules of a generation let it.
  std::vector<double> transferred(const std::vector<double>& values, const AcceleratorConfig& from,
                                  const AcceleratorConfig& to, Precision precision) const override;
  /// The tile and split that the closed form finds fastest, on persistent blocks. How far the
  /// library's choice is off that, on average, scales the result as in time().
  std::optional<BlockPlan> blocks(const Kernel& kernel, const AcceleratorConfig& accelerator,
                                  const double* values) const override;
};

}  // namespace orrery
