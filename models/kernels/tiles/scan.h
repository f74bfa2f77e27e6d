// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "models/kernels/family.h"

namespace orrery {

/// Kernels of state-space layers by the tiles of their published Triton implementation
/// (state-spaces/mamba 2.2, mamba_ssm/ops/triton/ssd_chunk_state.py, ssd_chunk_scan.py, ssd_bmm.py,
/// ssd_combined.py): a roofline over thread blocks that each make a tile of 64 x 64 results, where
/// configurations range from 32 x 32 to 128 x 256. In a block products follow the exponentials of
/// decays, for a loop needs the ones to scale the operands of the others; whole waves of two blocks
/// a unit run at a time; tiles load their operands through the L2. Kernels without products stream
/// rows, or are recurrences (k > 0): `batch` blocks of k threads, each over m tokens in turn. No
/// table has been measured: parameters are estimates, but for what published times say (priors).
class ScanFamily final : public KernelFamily {
 public:
  const std::vector<ParameterInfo>& parameters() const override;
  std::vector<double> priors(const AcceleratorConfig& accelerator,
                             Precision precision) const override;
  KernelTime time(const Kernel& kernel, const AcceleratorConfig& accelerator,
                  const double* values) const override;
};

}  // namespace orrery
