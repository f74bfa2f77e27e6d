// SPDX-License-Identifier: Apache-2.0
#include "sim/app/questions/sweep_columns.h"

#include <array>
#include <cstdio>

#include "sim/results/metric_table.h"
#include "sim/results/table.h"

namespace orrery {
namespace {

/// A parameter as it is written, a metric with its unit and interval; "-" without.
std::string text_of(const RunRecord& record, const std::string& name) {
  const Metric* metric = record.find(name);
  if (metric == nullptr) {
    const std::string named = name + "." + name.substr(name.rfind('.') + 1);  // of model: its name
    for (const Parameter& parameter : record.parameters())
      if (parameter.path == name || parameter.path == named) return parameter.text;
    return "-";
  }
  const std::string unit = find_metric(name)->unit;
  const char* shown = unit == "1" || unit.starts_with("1/") ? "" : unit.c_str();
  std::string text = format_si(metric->value, shown);
  if (metric->interval)
    text += " [" + format_si(metric->interval->first, shown) + ", " +
            format_si(metric->interval->second, shown) + "]";
  return text;
}

std::optional<double> number_of(const RunRecord& record, const std::string& name) {
  const std::optional<NamedValue> value = value_of(record, name);
  return value ? std::optional(value->value) : std::nullopt;
}

std::string factor_text(double factor) {
  std::array<char, 40> text{};
  std::snprintf(text.data(), text.size(), "%.3gx", factor);
  return text.data();
}

}  // namespace

std::vector<SweepColumn> sweep_columns(const SweepTableConfig& asked, const TableView& usual) {
  if (asked.columns.empty()) return usual.columns;
  std::vector<SweepColumn> columns;
  columns.reserve(asked.columns.size());
  for (const std::string& name : asked.columns)
    columns.push_back({{name, Table::Align::kRight},
                       [name](const RunRecord& record) { return text_of(record, name); },
                       find_metric(name) == nullptr});
  return columns;
}

std::vector<Table::Column> Gains::titles() const {
  if (!sought_) return {};
  return {{"over the first", Table::Align::kRight}, {"over the one above", Table::Align::kRight}};
}

std::vector<std::string> Gains::next(const RunRecord& record, bool fits) {
  if (!sought_) return {};
  const std::optional<double> value = fits ? number_of(record, sought_->name()) : std::nullopt;
  if (!value) return {"-", "-"};
  const auto better = [&](double than) {
    return factor_text(sought_->minimize.empty() ? *value / than : than / *value);
  };
  if (!first_) first_ = above_ = value;
  std::vector<std::string> cells = {better(*first_), better(*above_)};
  above_ = value;
  return cells;
}

}  // namespace orrery
