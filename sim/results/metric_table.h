// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace orrery {

/// What a metric does where the whole run takes x times as long.
enum class Follows {
  kNothing,
  kTime,  ///< x times as large
  kRate,  ///< so much per time: it is 1 / x as large
};

/// One number or word of a result: names, units and meanings are fixed for users.
struct MetricInfo {
  std::string name;         ///< name such as "step_time_s"
  std::string unit;         ///< "s", "B/s"; "1" for ratios and counts, empty for words
  std::string meaning;      ///< one line
  std::string experiments;  ///< kinds that have it: "training, inference", or "all"
  Follows follows = Follows::kNothing;
};

/// A metric, declared where it is produced: `const DeclaredMetric kStepTime{{"step_time_s", "s",
/// "one step", "training, inference", Follows::kTime}};`.
class DeclaredMetric {
 public:
  /// @throws std::logic_error for a name that is declared twice
  explicit DeclaredMetric(MetricInfo info);
  const MetricInfo& info() const { return *info_; }

 private:
  const MetricInfo* info_;
};

/// Every metric by its name.
const std::map<std::string, MetricInfo, std::less<>>& metric_table();

/// The metric of that name, or nullptr.
const MetricInfo* find_metric(std::string_view name);

}  // namespace orrery
