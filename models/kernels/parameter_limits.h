// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "models/kernels/device/family.h"
#include "sim/machine/calibration.h"

namespace orrery {

/// The family of a group of parameters ("gemm"), by any class of kernels that has it; null: none.
const KernelFamily* family_named(const std::string& model, const std::string& group);

/// The lowest value that a fit lets a parameter take: a thousandth where 0 is the limit.
double lowest_fitted(const ParameterInfo& info);

/// Whether a fit ended at a limit of a parameter: the measurements ask for more than the family can
/// say, and its value is no estimate.
bool at_limit(const ParameterInfo& info, double value);

/// A parameter of a calibration that does.
struct ParameterAtLimit {
  const KernelFit* fit = nullptr;
  std::string name;  ///< name such as "gemm.throttle_time"
  double value = 0;
};

/// Fitted ones alone, in the order of the calibration.
/// @param calibration has to outlive the result
std::vector<ParameterAtLimit> parameters_at_limits(const Calibration& calibration);

}  // namespace orrery
