// SPDX-License-Identifier: Apache-2.0
#include "sim/app/questions/sweep_rows.h"

#include <fmt/core.h>
#include <algorithm>
#include <functional>
#include <map>
#include <numeric>
#include <set>

#include "sim/units/comma_separated.h"

namespace orrery {
namespace {

/// The value that the settings of a point give a path; null: they do not.
const config::Node* setting_of(const SweepPoint& point, const std::string& path) {
  const config::Node* found = nullptr;
  for (const config::Assignment& setting : point.settings)
    if (setting.path == path) found = &setting.value;
  return found;
}

/// The value of a path as it was written, else as the result has it; "-" without. A machine or a
/// model is called by its name, also where a file or its keys were written.
std::string value_of_path(const SweepPoint& point, const RunRecord& record,
                          const std::string& path) {
  if (record.base) {
    const std::string name = path + "." + path.substr(path.rfind('.') + 1);
    for (const Parameter& parameter : record.parameters())
      if (parameter.path == name) return parameter.text;
  }
  const config::Node* written = setting_of(point, path);
  if (written != nullptr && written->is_scalar()) return written->text();
  for (const Parameter& parameter : record.parameters())
    if (parameter.path == path) return parameter.text;
  return "-";
}

/// The name of its variant and what it has of the axes that have rows.
std::string row_name(const PointResult& result, const SweepCaseConfig& described) {
  const SweepPoint& point = result.point;
  const std::vector<std::string>& keys = described.table.rows;
  if (keys.empty()) return *point.name;
  std::string text;
  for (const config::Assignment& setting : point.settings) {
    if (std::ranges::find(keys, setting.path) == keys.end()) continue;
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ",
                        setting.path.substr(setting.path.rfind('.') + 1),
                        value_of_path(point, result.record, setting.path));
  }
  const bool variant = *point.name != described.name;
  return (variant ? *point.name + ": " : std::string()) + text;
}

SweepTableRow& row_called(const std::string& name, std::vector<SweepTableRow>& rows) {
  for (SweepTableRow& row : rows)
    if (row.name == name) return row;
  return rows.emplace_back(SweepTableRow{name, {}, {}, {}});
}

}  // namespace

std::vector<std::size_t> variants_of(const Sweep& sweep, std::size_t case_index) {
  std::vector<std::size_t> variants;
  for (std::size_t i = 0; i < sweep.rows.size(); ++i)
    if (sweep.rows[i].case_index == case_index) variants.push_back(i);
  return variants;
}

std::uint64_t places_excluded(const SweepResults& results, const std::vector<std::size_t>& variants,
                              std::size_t rule) {
  return std::transform_reduce(
      variants.begin(), variants.end(), std::uint64_t{0}, std::plus<>(),
      [&](std::size_t variant) { return results.excluded[variant][rule]; });
}

std::vector<std::string> excluded_by(const Sweep& sweep, const SweepResults& results,
                                     const std::vector<std::size_t>& variants) {
  std::vector<std::string> texts;
  if (variants.empty()) return texts;
  const auto& rules = sweep.rules[sweep.rows[variants.front()].case_index].where;
  for (std::size_t rule = 0; rule < rules.size(); ++rule)
    if (const std::uint64_t places = places_excluded(results, variants, rule); places > 0)
      texts.push_back(fmt::format("{} by {}", places, rules[rule].explained()));
  return texts;
}

std::vector<SweepTableRow> table_rows(const Sweep& sweep, const SweepResults& results,
                                      std::size_t case_index) {
  const SweepCaseConfig& described = sweep.config.cases[case_index];
  std::map<std::string, std::vector<const PointResult*>> kept;  // by variant
  for (const PointResult& result : results.kept)
    if (result.point.case_index == case_index) kept[*result.point.name].push_back(&result);
  std::map<std::string, std::vector<std::size_t>> variants;
  for (const std::size_t variant : variants_of(sweep, case_index))
    variants[sweep.rows[variant].name].push_back(variant);
  std::vector<SweepTableRow> rows;
  std::set<std::string> done;
  for (const std::size_t variant : variants_of(sweep, case_index)) {
    const std::string& name = sweep.rows[variant].name;
    if (!done.insert(name).second) continue;
    for (const PointResult* result : kept[name]) {
      SweepTableRow& row = row_called(row_name(*result, described), rows);
      row.records.push_back(&result->record);
      row.points.push_back(&result->point);
    }
    const auto excluded = excluded_by(sweep, results, variants[name]);
    if (kept[name].empty() && !excluded.empty())
      row_called(name, rows).excluded = comma_joined(excluded);
  }
  return rows;
}

std::vector<const RunRecord*> shown_records(const ChooseConfig& choice, const SweepTableRow& row) {
  std::vector<const RunRecord*> records;
  if (row.records.empty()) return records;
  if (choice.optimises()) {
    if (const RunRecord* chosen = choose(choice, row.records)) records.push_back(chosen);
  } else {
    for (const RunRecord* record : row.records)
      if (record->status != RunStatus::kOk || keeps_limits(choice, *record))
        records.push_back(record);
  }
  if (records.empty()) records.push_back(row.records.front());
  return records;
}

const SweepPoint& point_of(const SweepTableRow& row, const RunRecord& record) {
  for (std::size_t i = 0; i < row.records.size(); ++i)
    if (row.records[i] == &record) return *row.points[i];
  return *row.points.front();
}

std::string title_of(const SweepTableRow& row, const RunRecord& record, bool one_of_many) {
  const std::string axes = one_of_many ? Sweep::axes(point_of(row, record)) : std::string();
  return axes.empty() ? row.name : row.name + ", " + axes;
}

std::vector<std::string> chosen_paths(const SweepCaseConfig& described,
                                      const std::vector<SweepTableRow>& rows) {
  std::vector<std::string> paths;
  if (!described.choose.optimises()) return paths;
  const auto is_known = [&](const std::string& path) {
    const auto& of_rows = described.table.rows;
    return std::ranges::find(paths, path) != paths.end() ||
           std::ranges::find(of_rows, path) != of_rows.end();
  };
  const auto differs = [](const SweepTableRow& row, const std::string& path) {
    const config::Node* first = setting_of(*row.points.front(), path);
    return std::ranges::any_of(row.points, [&](const SweepPoint* point) {
      const config::Node* other = setting_of(*point, path);
      if (first == nullptr || other == nullptr) return first != other;
      return first->is_scalar() && other->is_scalar() && first->text() != other->text();
    });
  };
  for (const SweepTableRow& row : rows)
    for (const SweepPoint* point : row.points)
      for (const config::Assignment& setting : point->settings)
        if (!is_known(setting.path) && differs(row, setting.path)) paths.push_back(setting.path);
  return paths;
}

std::string value_at(const SweepTableRow& row, const RunRecord& record, const std::string& path) {
  return value_of_path(point_of(row, record), record, path);
}

void Reasons::add(const std::string& row, const std::string& point, const std::string& reason) {
  auto found = std::ranges::find(reasons_, reason, &Reason::text);
  if (found == reasons_.end()) found = reasons_.insert(found, {reason, point, {}, 0});
  ++found->count;
  if (std::ranges::find(found->rows, row) == found->rows.end()) found->rows.push_back(row);
}

std::string Reasons::lines(const std::string& begin) const {
  std::string text;
  for (const Reason& reason : reasons_) {
    const bool one = reason.count == 1;
    text += fmt::format("{}{}: {}{}\n", begin, one ? reason.point : comma_joined(reason.rows),
                        reason.text, one ? "" : fmt::format(" ({} points)", reason.count));
  }
  return text;
}

void add_reasons(const ChooseConfig& choice, const SweepTableRow& row, Reasons& reasons) {
  const bool many = row.records.size() > 1;
  const auto shown = shown_records(choice, row);
  const RunRecord& first = *shown.front();
  // Of points that do not fit, each by another size, one stands for all.
  const auto is_like = [&](const RunRecord* record) {
    return record->status == first.status && !cannot_be(*record) && !cannot_be(first);
  };
  const auto alike = std::ranges::count_if(row.records, is_like);
  const bool one_of_many = first.status != RunStatus::kOk && shown.size() == 1 && alike > 1;
  if (one_of_many)
    reasons.add(row.name, row.name,
                fmt::format("{} (the first of {} points)", first.reason, alike));
  for (const RunRecord* record : row.records) {
    if (record->status == RunStatus::kOk || (one_of_many && is_like(record))) continue;
    const bool listed = std::ranges::find(shown, record) != shown.end();
    if (listed || cannot_be(*record))
      reasons.add(row.name, title_of(row, *record, many), record->reason);
  }
  if (shown.size() != 1 || keeps_limits(choice, first)) return;
  for (const RunRecord* record : row.records)
    if (record->status == RunStatus::kOk)
      reasons.add(row.name, row.name, "no point keeps the limits of this table");
}

}  // namespace orrery
