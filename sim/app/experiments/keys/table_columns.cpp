// SPDX-License-Identifier: Apache-2.0
#include "sim/app/experiments/keys/table_columns.h"

#include <algorithm>

namespace orrery {

std::string metric_cell(const RunRecord& record, const char* name, const char* unit) {
  const Metric* m = record.find(name);
  return m != nullptr ? format_si(m->value, unit) : "-";
}

std::string percent_cell(const RunRecord& record, const char* name) {
  const Metric* m = record.find(name);
  return m != nullptr ? format_percent(m->value) : "-";
}

std::string label_cell(const RunRecord& record, const char* name) {
  const auto named = [name](const Label& l) { return l.name == name; };
  const auto found = std::find_if(record.labels.begin(), record.labels.end(), named);
  return found != record.labels.end() ? found->value : "-";
}

std::string interval_cell(const RunRecord& record, const char* name) {
  const Metric* m = record.find(name);
  if (m == nullptr || !m->interval) return "-";
  return format_si(m->interval->first, "s") + " to " + format_si(m->interval->second, "s");
}

std::string time_cell(const RunRecord& record, const char* name, const char* unit) {
  if (record.status == RunStatus::kOk) return metric_cell(record, name, unit);
  if (record.status == RunStatus::kFailed) return "failed";
  const Metric* shortfall = record.find("memory_shortfall_bytes");
  if (shortfall != nullptr) return "does not fit, " + format_si(shortfall->value, "B") + " short";
  return record.reason.starts_with(kCannotBe) ? kCannotBe : "infeasible";
}

}  // namespace orrery
