// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace orrery {

/// One number or word of a result: names, units and meanings are fixed for users.
struct MetricInfo {
  std::string name;         ///< "step_time_s"
  std::string unit;         ///< "s", "B/s"; "1" for ratios and counts, empty for words
  std::string meaning;      ///< one line
  std::string experiments;  ///< kinds that have it: "training, inference", or "all"
};

/// Every metric, in the order in which it is documented.
const std::vector<MetricInfo>& metric_table();

/// The metric of that name, or nullptr.
const MetricInfo* find_metric(std::string_view name);

}  // namespace orrery
