// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <vector>

#include "sim/machine/accelerator_config.h"
#include "sim/machine/calibration.h"
#include "validation/calibration/fit.h"

namespace orrery {

/// What the rows that were fitted took over what the fit predicts, for its table of ratios
/// (models/kernels/residual_table.h).
///
/// A row is about its kernels of one class, that of the kernel with the most matrix FLOPs; others,
/// such as the quantisation before a narrow product, count as predicted. So the ratio of the row's
/// kernels of the class is (measured - others) / predicted, the same for all of them, at least 1/4
/// and at most 4: the sum of the row is right and no time is negative. Empty for classes whose
/// family has no residual points.
///
/// Of each part (ResidualPoint) its share of `most` rows is kept, but at least 100, evenly spaced
/// in the order of the table, which is sorted by shape. Rows whose time is off by more than a
/// factor of e^0.5 from what their neighbours tell are left out.
std::vector<MeasuredRatio> row_ratios(const Calibration& calibration, const KernelFit& fit,
                                      const std::vector<FitRow>& rows,
                                      const AcceleratorConfig& accelerator, std::size_t most);

}  // namespace orrery
