// SPDX-License-Identifier: Apache-2.0
#include "sim/store/point_table.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>
#include <utility>

#include "sim/results/metric_table.h"
#include "sim/store/record_reader.h"
#include "sim/store/record_writer.h"
#include "sim/store/views.h"

namespace orrery {
namespace {

bool is_whole(const std::string& text) {
  return !text.empty() && text.size() < 10 &&
         text.find_first_not_of("0123456789") == std::string::npos;
}

const Parameter* parameter_of(const Configuration& configuration, const std::string& path) {
  for (const Parameter& parameter : configuration.parameters)
    if (parameter.path == path) return &parameter;
  return nullptr;
}

std::string unit_of(const std::string& metric) {
  const MetricInfo* info = find_metric(metric);
  return info != nullptr ? info->unit : std::string();
}

constexpr std::int64_t kBehindAll = std::numeric_limits<std::int64_t>::max();

}  // namespace

PointTable::PointTable(const Database& database) : database_(database) { read_parts(); }

void PointTable::read_parts() {
  std::int64_t next = 0;  // first point that is in no part yet
  for (RowGroup& group : read_row_groups(database_)) {
    const PointSpan range = group.range();
    if (range.first > next) add_part({next, range.first}, std::nullopt);
    add_part(range, std::move(group));
    next = range.last;
  }
  add_part({next, kBehindAll}, std::nullopt);
}

void PointTable::add_part(PointSpan range, std::optional<RowGroup> group) {
  Part part{points_.size(), range, std::move(group)};
  if (part.group) {
    add_points(part.group->list);
  } else {
    PointList list = read_points(database_, range);
    add_points(list);
    for (std::size_t row = part.first; row < points_.size(); ++row) unchecked_.push_back(row);
    part.points = std::move(list.points);
  }
  if (points_.size() > part.first) parts_.push_back(std::move(part));
}

void PointTable::add_points(const PointList& list) {
  std::vector<std::uint32_t> places;  // of the list's groups here
  places.reserve(list.groups.size());
  for (const Group& group : list.groups) {
    const auto known = std::find(groups_.begin(), groups_.end(), group);
    places.push_back(static_cast<std::uint32_t>(known - groups_.begin()));
    if (known != groups_.end()) continue;
    groups_.push_back(group);
    counts_.push_back(0);
  }
  points_.insert(points_.end(), list.points.begin(), list.points.end());
  for (const std::uint32_t group : list.group_of) {
    group_of_.push_back(places[group]);
    ++counts_[places[group]];
  }
}

std::vector<std::optional<PointColumn>> PointTable::columns(
    const std::vector<std::string>& names) const {
  std::vector<std::optional<PointColumn>> columns;
  columns.reserve(names.size());
  for (const std::string& name : names) columns.push_back(column(name));
  return columns;
}

std::optional<PointColumn> PointTable::column(const std::string& name) const {
  std::optional<PointColumn> column = metric(name);
  if (!column) column = property(name);
  if (!column) column = quantile(name);
  if (!column) column = configured(name);
  if (!column) column = configured(name + "." + name.substr(name.rfind('.') + 1));
  return column;
}

PointColumn PointTable::read(const std::vector<ColumnSource>& sources, std::string unit) const {
  using Kind = PointColumn::Kind;
  ColumnBuilder builder(PointColumn::empty(sources.front().words ? Kind::kWord : Kind::kNumber,
                                           std::move(unit), size()));
  std::vector<ColumnRead> reads;
  reads.reserve(sources.size());
  for (const ColumnSource& source : sources) reads.push_back({source, &builder});
  for (const Part& part : parts_) {
    if (part.group) {
      read_columns(database_, *part.group, reads, part.first);
    } else {
      read_rows(database_, part.range, part.points, reads, part.first);
    }
  }
  return std::move(builder.column());
}

std::optional<PointColumn> PointTable::metric(const std::string& name) const {
  std::vector<ColumnSource> sources;  // of each kind of experiment
  for (const std::string& kind : kinds())
    for (const auto& [column, type] : column_types(database_, metrics_table(kind)))
      if (column == name && column != "point" &&
          (sources.empty() || sources.front().words == is_word_type(type)))
        sources.push_back({metrics_table(kind), "", name, is_word_type(type)});
  if (sources.empty()) return std::nullopt;
  return read(sources, sources.front().words ? std::string() : unit_of(name));
}

std::optional<PointColumn> PointTable::property(const std::string& name) const {
  if (name == "status" || name == "experiment" || name == "engine_version") return of_groups(name);
  if (name == "identity") {  // in no row group: different for each point
    ColumnBuilder builder(PointColumn::empty(PointColumn::Kind::kWord, "", size()));
    read_rows(database_, {0, kBehindAll}, points_, {{{"points", "", name, true}, &builder}}, 0);
    return std::move(builder.column());
  }
  if (name != "name" && name != "reason" && name != "exit_code") return std::nullopt;
  return read({{"points", "", name, name != "exit_code"}}, "");
}

PointColumn PointTable::of_groups(const std::string& name) const {
  const auto text_of = [&](const Group& group) {
    return name == "status"       ? group.status
           : name == "experiment" ? group.experiment
                                  : group.engine_version;
  };
  const bool numbers = std::all_of(groups_.begin(), groups_.end(),
                                   [&](const Group& group) { return is_whole(text_of(group)); });
  using Kind = PointColumn::Kind;
  ColumnBuilder builder(PointColumn::empty(numbers ? Kind::kNumber : Kind::kWord, "", size()));
  std::vector<std::uint32_t> codes;
  codes.reserve(groups_.size());
  for (const Group& group : groups_) codes.push_back(builder.code(text_of(group)));
  PointColumn& column = builder.column();
  for (std::size_t row = 0; row < size(); ++row) {
    if (numbers) {
      column.numbers[row] = std::stod(text_of(group(row)));
    } else {
      column.codes[row] = codes[group_of_[row]];
    }
  }
  return std::move(column);
}

std::optional<PointColumn> PointTable::quantile(const std::string& name) const {
  const bool low = name.ends_with(".p10");
  if (!low && !name.ends_with(".p90")) return std::nullopt;
  const std::string metric = name.substr(0, name.rfind('.'));
  const std::vector<std::string> known = metrics();
  if (std::find(known.begin(), known.end(), metric) == known.end()) return std::nullopt;
  return read({{"intervals", metric, low ? "p10" : "p90", false}}, unit_of(metric));
}

std::optional<PointColumn> PointTable::configured(const std::string& path) const {
  const Parameter* example = nullptr;
  bool flags = true, numbers = true;
  std::vector<const Parameter*> of_group;
  of_group.reserve(groups_.size());
  for (const Group& group : groups_) {
    const auto base = bases().find(group.base);
    const Parameter* parameter =
        base != bases().end() ? parameter_of(*base->second, path) : nullptr;
    of_group.push_back(parameter);
    if (parameter == nullptr) continue;
    example = parameter;
    flags = flags && (parameter->text == "true" || parameter->text == "false");
    numbers = numbers && parameter->value.has_value();
  }
  if (example == nullptr) return std::nullopt;
  using Kind = PointColumn::Kind;
  const Kind kind = numbers ? Kind::kNumber : flags ? Kind::kFlag : Kind::kWord;
  ColumnBuilder builder(PointColumn::empty(kind, example->unit, size()));
  const auto set = [&](std::size_t row, const std::string& text, double value) {
    if (kind == Kind::kWord) builder.set(row, text);
    if (kind == Kind::kFlag) builder.set(row, text == "true" ? 1.0 : 0.0);
    if (kind == Kind::kNumber) builder.set(row, value);
  };
  const PointColumn texts = read({{"varied", path, "text", true}}, "");
  const PointColumn values = read({{"varied", path, "value", false}}, "");
  for (std::size_t row = 0; row < size(); ++row) {
    const Parameter* parameter = of_group[group_of_[row]];
    if (texts.has(row)) {
      set(row, texts.word(row), values.numbers[row]);
    } else if (parameter != nullptr) {
      set(row, parameter->text, parameter->value.value_or(0));
    }
  }
  return std::move(builder.column());
}

std::set<std::string> PointTable::kinds() const {
  std::set<std::string> kinds;
  for (const Group& group : groups_) kinds.insert(group.experiment);
  return kinds;
}

std::vector<std::string> PointTable::metrics() const { return metrics_of_type(false); }

std::vector<std::string> PointTable::labels() const { return metrics_of_type(true); }

std::vector<std::string> PointTable::metrics_of_type(bool words) const {
  std::set<std::string> names;
  for (const std::string& kind : kinds())
    for (const auto& [column, type] : column_types(database_, metrics_table(kind)))
      if (column != "point" && is_word_type(type) == words) names.insert(column);
  return {names.begin(), names.end()};
}

const std::map<std::int64_t, std::shared_ptr<const Configuration>>& PointTable::bases() const {
  if (!bases_.empty()) return bases_;
  for (const Group& group : groups_)
    if (group.base != 0 && bases_.count(group.base) == 0)
      bases_.emplace(group.base, read_configuration(database_, group.base));
  return bases_;
}

std::vector<std::string> PointTable::axes() const {
  std::set<std::string> axes;
  for (const Part& part : parts_) {
    const auto of_part = part.group ? varied_axes(*part.group) : varied_axes(database_, part.range);
    axes.insert(of_part.begin(), of_part.end());
  }
  std::map<std::string, std::string> first;  // texts by path
  for (const auto& [id, base] : bases()) {
    for (const Parameter& parameter : base->parameters) {
      const auto [known, added] = first.emplace(parameter.path, parameter.text);
      if (!added && known->second != parameter.text) axes.insert(parameter.path);
    }
  }
  return {axes.begin(), axes.end()};
}

std::vector<std::string> PointTable::paths() const {
  std::set<std::string> paths;
  for (const auto& [id, base] : bases())
    for (const Parameter& parameter : base->parameters) paths.insert(parameter.path);
  return {paths.begin(), paths.end()};
}

}  // namespace orrery
