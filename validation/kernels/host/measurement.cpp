// SPDX-License-Identifier: Apache-2.0
#include "host/measurement.h"

#include <algorithm>
#include <set>
#include <tuple>
#include <utility>

#include "host/priority.h"

namespace orrery::measure {
namespace {

/// A function's own static exists before the first Registration of any file needs it.
std::vector<Measurement>& registered() {
  static std::vector<Measurement> all;
  return all;
}

void demand(bool holds, const Measurement& measurement, const char* rule) {
  if (!holds) throw std::logic_error("measurement '" + measurement.name + "': " + rule);
}

}  // namespace

const std::vector<Measurement>& measurements() { return registered(); }

Registration::Registration(Measurement measurement) {
  auto& all = registered();
  demand(!measurement.name.empty(), measurement, "has no name");
  demand(measurement.number >= 1, measurement, "numbers start at 1");
  demand(measurement.run != nullptr, measurement, "has no function");
  const bool budgets = measurement.only_priority()
                           ? priority_budget_s(measurement.name) > 0
                           : measurement.quick_s > 0 && measurement.full_s > 0;
  demand(budgets, measurement, "has no time budget");
  const std::set<std::string> columns(measurement.columns.begin(), measurement.columns.end());
  demand(!columns.empty() && columns.size() == measurement.columns.size(), measurement,
         "column names are missing or repeated");
  for (const Measurement& other : all) {
    demand(other.name != measurement.name, measurement, "is registered twice");
  }
  const auto place =
      std::upper_bound(all.begin(), all.end(), measurement, [](const auto& a, const auto& b) {
        return std::tie(a.number, a.name) < std::tie(b.number, b.name);
      });
  all.insert(place, std::move(measurement));
}

}  // namespace orrery::measure
