// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "models/kernels/device/family.h"

namespace orrery {

/// Kernels of sparse attention (workloads/layers/sparse/indexer_kernels.h): a roofline over
/// thread blocks. Products (scores of an indexer, attention to what was chosen) take the longest of
/// matrix units, vector lanes, memory and L2, from which each block of rows loads all of its keys;
/// heads that do not fill the rows of a block leave them empty. Selections have a block for each
/// row of scores, which reads it twice at a unit's share of the L2's bandwidth, in whole waves.
/// Backwards blocks add gradients of their keys up in the L2, at a published share of the forward
/// rate. No table has been measured: parameters are estimates, but for what published rates say
/// (priors).
class SparseFamily final : public KernelFamily {
 public:
  const std::vector<ParameterInfo>& parameters() const override;
  std::vector<double> priors(const AcceleratorConfig& accelerator,
                             Precision precision) const override;
  KernelTime time(const Kernel& kernel, const AcceleratorConfig& accelerator,
                  const double* values) const override;
};

}  // namespace orrery
