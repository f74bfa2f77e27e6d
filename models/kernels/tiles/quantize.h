// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "models/kernels/device/family.h"

namespace orrery {

/// Activations to a narrower format, as serving engines do before a narrow product: [m, n] of 16
/// bits are read, the elements and their scales written. Time is the p-norm of three parts:
///  - a fixed one, launches and what one row takes at least (formats with a scale for the whole
///    tensor find its maximum first, in a kernel of its own),
///  - the length of a row, that one thread block walks through,
///  - all rows over the memory, short rows counting as `short_row` elements.
/// p below 1 means that they do more than follow each other. Fitted on rows of the GEMM tables of
/// H100, H200 and B200, each of which is a quantisation and a product.
class QuantizeFamily final : public KernelFamily {
 public:
  const std::vector<ParameterInfo>& parameters() const override;
  std::vector<double> priors(const AcceleratorConfig& accelerator,
                             Precision precision) const override;
  KernelTime time(const Kernel& kernel, const AcceleratorConfig& accelerator,
                  const double* values) const override;
  /// The fixed part grows with the units that have to agree on a maximum; rows follow the L2, where
  /// most of two passes stays: H100 and H200 quantise at one rate, a B200 at twice that.
  std::vector<double> transferred(const std::vector<double>& values, const AcceleratorConfig& from,
                                  const AcceleratorConfig& to, Precision precision) const override;
};

}  // namespace orrery
