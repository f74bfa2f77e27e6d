// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "models/kernels/measured_model.h"
#include "validation/importers/operator_table.h"

namespace orrery {

/// The kernels of an accelerator that a table has measured. Where a row is several kernels, those
/// it is about (the product behind a quantisation, both products of a mixture of experts) share
/// what the `others` leave of the measured time, in proportion to what `others` says of them.
std::vector<MeasuredKernel> measured_kernels(const OperatorTable& table,
                                             const AcceleratorConfig& accelerator,
                                             const KernelModel& others);

}  // namespace orrery
