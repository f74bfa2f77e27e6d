// SPDX-License-Identifier: Apache-2.0
#include "sim/results/metric_table.h"

#include <stdexcept>
#include <utility>

namespace orrery {
namespace {

using Metrics = std::map<std::string, MetricInfo, std::less<>>;

/// Made at its first use, because metrics of other files register while statics are initialised.
Metrics& declared() {
  static Metrics metrics;
  return metrics;
}

}  // namespace

DeclaredMetric::DeclaredMetric(MetricInfo info) {
  const std::string name = info.name;
  const auto [metric, added] = declared().emplace(name, std::move(info));
  if (!added) throw std::logic_error("metric declared twice: " + name);
  info_ = &metric->second;
}

const std::map<std::string, MetricInfo, std::less<>>& metric_table() { return declared(); }

const MetricInfo* find_metric(std::string_view name) {
  const auto metric = declared().find(name);
  return metric == declared().end() ? nullptr : &metric->second;
}

}  // namespace orrery
