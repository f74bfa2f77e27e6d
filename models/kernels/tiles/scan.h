// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "models/kernels/device/family.h"

namespace orrery {

/// Kernels of recurrent layers by the tiles of their published Triton implementations: a roofline
/// over thread blocks that each make a tile of 64 x 64 results. In a block products follow the
/// exponentials of decays, for a loop needs the ones to scale the operands of the others; tiles
/// load their operands through the L2. Kernels without products stream rows, or are recurrences
/// (models/kernels/device/recurrence.h).
///
/// Kernels that say their tile are those of flash-linear-attention: small ones, whose products take
/// operands as they were loaded. Those that leave it to the library are Mamba-2's
/// (state-spaces/mamba 2.2, mamba_ssm/ops/triton/ssd_*.py, 32 x 32 to 128 x 256): decays scale
/// operands in registers in front of each product, and registers leave few warps. No table has been
/// measured: parameters are estimates, but for what published times say (priors).
class ScanFamily final : public KernelFamily {
 public:
  const std::vector<ParameterInfo>& parameters() const override;
  std::vector<double> priors(const AcceleratorConfig& accelerator,
                             Precision precision) const override;
  KernelTime time(const Kernel& kernel, const AcceleratorConfig& accelerator,
                  const double* values) const override;
};

}  // namespace orrery
