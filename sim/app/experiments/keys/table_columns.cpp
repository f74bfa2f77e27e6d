// SPDX-License-Identifier: Apache-2.0
#include "sim/app/experiments/keys/table_columns.h"

#include <algorithm>

namespace orrery {

namespace {

constexpr Table::Align kRight = Table::Align::kRight;

std::string metric_cell(const RunRecord& record, const char* name, const char* unit) {
  const Metric* m = record.find(name);
  return m != nullptr ? format_si(m->value, unit) : "-";
}

std::string time_cell(const RunRecord& record, const char* name, const char* unit) {
  if (record.status == RunStatus::kOk) return metric_cell(record, name, unit);
  if (record.status == RunStatus::kFailed) return "failed";
  const Metric* shortfall = record.find("memory_shortfall_bytes");
  if (shortfall != nullptr) return "does not fit, " + format_si(shortfall->value, "B") + " short";
  return record.reason.starts_with(kCannotBe) ? kCannotBe : "infeasible";
}

}  // namespace

SweepColumn metric_column(const char* title, const char* metric, const char* unit) {
  return {{title, kRight}, [=](const RunRecord& r) { return metric_cell(r, metric, unit); }};
}

SweepColumn percent_column(const char* title, const char* metric) {
  return {{title, kRight}, [metric](const RunRecord& record) {
            const Metric* m = record.find(metric);
            return m != nullptr ? format_percent(m->value) : "-";
          }};
}

SweepColumn label_column(const char* title, const char* label) {
  return {{title}, [label](const RunRecord& record) {
            const auto found = std::ranges::find(record.labels, label, &Label::name);
            return found != record.labels.end() ? found->value : "-";
          }};
}

SweepColumn interval_column(const char* metric) {
  return {{"p10 to p90", kRight}, [metric](const RunRecord& record) -> std::string {
            const Metric* m = record.find(metric);
            if (m == nullptr || !m->interval) return "-";
            return format_si(m->interval->first, "s") + " to " +
                   format_si(m->interval->second, "s");
          }};
}

SweepColumn time_column(const char* title, const char* metric, const char* unit) {
  return {{title, kRight}, [=](const RunRecord& r) { return time_cell(r, metric, unit); }};
}

SweepColumn precision_column(const char* precision) {
  return {{"precision"}, [=](const RunRecord&) { return precision; }, true, {"precision"}};
}

}  // namespace orrery
