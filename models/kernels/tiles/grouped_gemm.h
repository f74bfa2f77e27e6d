// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "models/kernels/device/family.h"

namespace orrery {

/// The products of a mixture of experts, as TensorRT-LLM runs them: tiles of each expert's rows by
/// 128 or 256 features, none of them across experts, in waves over the chip, while the weights of
/// the active experts stream from memory. Tiles are chosen by the rows that an expert would have in
/// balance, not by those that it gets: CUTLASS profiles a menu, DeepGEMM (block-scaled formats)
/// follows a rule, so that a hot expert reads its weights once for every block of its rows. Beside
/// the products it prices what the fused operator adds to the permutation, activation and
/// combination of the graph: sorting copies by expert, quantising rows, gathering them. Every tile
/// takes up the operands of its expert (TMA descriptors of a grouped product), about 1 us, which is
/// what narrow experts are made of; results of the second product are added up for their tokens as
/// they are written, about twice as long as writing them.
class GroupedGemmFamily final : public KernelFamily {
 public:
  const std::vector<ParameterInfo>& parameters() const override;
  std::vector<double> priors(const AcceleratorConfig& accelerator,
                             Precision precision) const override;
  KernelTime time(const Kernel& kernel, const AcceleratorConfig& accelerator,
                  const double* values) const override;
  std::optional<ResidualPoint> residual_point(const Kernel& kernel,
                                              const AcceleratorConfig& on) const override;
  /// The tile that the closed form finds fastest in profiles, on persistent blocks: full ones, and
  /// one of each expert and column of tiles with the rows that are left over, the same for all
  /// experts. How far the library's choice is off that, on average, scales the result as in time().
  std::optional<BlockPlan> blocks(const Kernel& kernel, const AcceleratorConfig& accelerator,
                                  const double* values) const override;
};

}  // namespace orrery
