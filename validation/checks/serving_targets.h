// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "validation/calibration/errors.h"
#include "validation/checks/serving_validation.h"

namespace orrery {

/// Rows that are judged together.
struct ServingTarget {
  std::string name;
  ErrorSummary tpot, ttft;
};

/// Dense models; models of experts whose engine's version is known, without rows of DeepSeek-R1
/// whose key has been measured with times an answer that differ by more than 10 % (draft tokens are
/// no part of keys); then each of these models.
std::vector<ServingTarget> serving_targets(const std::vector<ServingComparison>& comparisons);

/// Errors of both times, in the summary's microseconds.
/// @param of rows with a prediction
ServingTarget serving_target(const std::string& name,
                             const std::vector<const ServingComparison*>& of);

}  // namespace orrery
