// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "host/measurement.h"

namespace orrery::measure {

/// One measurement of `--priority`.
struct PriorityPart {
  const char* name = "";  ///< name of a registered measurement
  double budget_s = 0;    ///< time budget on an H100 or H200
};

/// Measurements of `--priority` in the order in which they run: a run that is cut short keeps the
/// most important ones.
const std::vector<PriorityPart>& priority_parts();

/// How many seconds `--priority` gives a measurement. It gives 0 to those that it leaves out.
double priority_budget_s(const std::string& name);

/// The registered measurements of priority_parts(), in that order. @throws std::logic_error if one
/// of them is not registered.
std::vector<const Measurement*> prioritised(const std::vector<Measurement>& all);

/// "--priority measures, in this order: gemm, ..."
std::string priority_listing(const std::vector<Measurement>& all);

}  // namespace orrery::measure
