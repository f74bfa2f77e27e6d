// SPDX-License-Identifier: Apache-2.0
#include "sim/store/point_table.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <set>
#include <utility>

#include "sim/results/metric_table.h"
#include "sim/store/record_reader.h"
#include "sim/store/record_writer.h"
#include "sim/store/views.h"

namespace orrery {
namespace {

constexpr double kNoNumber = std::numeric_limits<double>::quiet_NaN();

/// The word's place in a column, which gets it where it is new. Neighbours often have the same.
class Words {
 public:
  explicit Words(PointColumn& column) : column_(column) {}

  std::uint32_t code(std::string word) {
    if (last_ != 0 && column_.words[last_] == word) return last_;
    const auto [known, added] =
        codes_.emplace(std::move(word), static_cast<std::uint32_t>(column_.words.size()));
    if (added) column_.words.push_back(known->first);
    return last_ = known->second;
  }

 private:
  PointColumn& column_;
  std::map<std::string, std::uint32_t> codes_;
  std::uint32_t last_ = 0;
};

bool is_whole(const std::string& text) {
  return !text.empty() && text.size() < 10 &&
         text.find_first_not_of("0123456789") == std::string::npos;
}

const Parameter* parameter_of(const Configuration& configuration, const std::string& path) {
  for (const Parameter& parameter : configuration.parameters)
    if (parameter.path == path) return &parameter;
  return nullptr;
}

}  // namespace

bool PointColumn::has(std::size_t row) const {
  return kind == Kind::kWord ? codes[row] != 0 : !std::isnan(numbers[row]);
}

PointTable::PointTable(const Database& database) : database_(database) {
  read_groups();
  read_points();
}

void PointTable::read_groups() {
  Statement select = database_.prepare(
      "SELECT status, experiment, engine_version, base, count(*) FROM points "
      "GROUP BY status, experiment, engine_version, base");
  while (select.step()) {
    groups_.push_back({select.text(0), select.text(1), select.text(2), select.integer(3)});
    counts_.push_back(static_cast<std::size_t>(select.integer(4)));
  }
}

void PointTable::read_points() {
  std::vector<std::pair<std::int64_t, std::uint32_t>> points;
  points.reserve(std::accumulate(counts_.begin(), counts_.end(), std::size_t{0}));
  // From the index alone, which has the points of a group in their order.
  Statement select = database_.prepare(
      "SELECT point FROM points WHERE status = ? AND experiment = ? AND engine_version = ? AND "
      "base IS ?");
  for (std::uint32_t i = 0; i < groups_.size(); ++i) {
    const Group& group = groups_[i];
    select.bind(1, group.status).bind(2, group.experiment).bind(3, group.engine_version);
    if (group.base != 0) {
      select.bind(4, group.base);
    } else {
      select.bind(4, std::nullopt);
    }
    while (select.step()) points.emplace_back(select.integer(0), i);
    select.reset();
  }
  if (groups_.size() > 1) std::sort(points.begin(), points.end());
  points_.reserve(points.size());
  group_of_.reserve(points.size());
  for (const auto& [point, group] : points) {
    points_.push_back(point);
    group_of_.push_back(group);
  }
}

PointColumn PointTable::empty_column(PointColumn::Kind kind, std::string unit) const {
  PointColumn column;
  column.kind = kind;
  column.unit = std::move(unit);
  if (kind == PointColumn::Kind::kWord) {
    column.codes.assign(size(), 0);
  } else {
    column.numbers.assign(size(), kNoNumber);
  }
  return column;
}

template <class Set>
void PointTable::merge(Statement& select, const Set& set) const {
  std::size_t row = 0;
  while (select.step()) {
    const std::int64_t point = select.integer(0);
    while (row < points_.size() && points_[row] < point) ++row;
    if (row == points_.size()) break;
    if (points_[row] == point) set(row);
  }
}

std::vector<std::optional<PointColumn>> PointTable::columns(
    const std::vector<std::string>& names) const {
  std::vector<std::optional<PointColumn>> columns(names.size());
  read_metrics(names, columns);
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (!columns[i]) columns[i] = property(names[i]);
    if (!columns[i]) columns[i] = quantile(names[i]);
    if (!columns[i]) columns[i] = configured(names[i]);
  }
  return columns;
}

std::optional<PointColumn> PointTable::column(const std::string& name) const {
  return std::move(columns({name}).front());
}

void PointTable::read_metrics(const std::vector<std::string>& names,
                              std::vector<std::optional<PointColumn>>& columns) const {
  std::set<std::string> kinds;
  for (const Group& group : groups_) kinds.insert(group.experiment);
  for (const std::string& kind : kinds) {
    const std::string table = metrics_table(kind);
    std::vector<std::size_t> found;
    std::string selected = "point";
    for (const auto& [column, type] : column_types(database_, table)) {
      const auto name = std::find(names.begin(), names.end(), column);
      if (name == names.end() || column == "point") continue;
      found.push_back(static_cast<std::size_t>(name - names.begin()));
      selected += ", " + sql_name(column);
      const MetricInfo* info = type == "REAL" ? find_metric(column) : nullptr;
      if (!columns[found.back()])
        columns[found.back()] =
            empty_column(type == "REAL" ? PointColumn::Kind::kNumber : PointColumn::Kind::kWord,
                         info != nullptr ? info->unit : "");
    }
    if (found.empty()) continue;
    Statement select = database_.prepare("SELECT " + selected + " FROM " + sql_name(table));
    fill(select, found, columns);
  }
}

void PointTable::fill(Statement& select, const std::vector<std::size_t>& places,
                      std::vector<std::optional<PointColumn>>& columns) const {
  std::vector<Words> words;
  words.reserve(places.size());
  for (const std::size_t place : places) words.emplace_back(*columns[place]);
  merge(select, [&](std::size_t row) {
    for (std::size_t i = 0; i < places.size(); ++i) {
      const int at = static_cast<int>(i) + 1;
      PointColumn& column = *columns[places[i]];
      if (select.is_null(at)) continue;
      if (column.kind == PointColumn::Kind::kNumber) {
        column.numbers[row] = select.real(at);
      } else {
        column.codes[row] = words[i].code(select.text(at));
      }
    }
  });
}

std::optional<PointColumn> PointTable::property(const std::string& name) const {
  const bool of_group = name == "status" || name == "experiment" || name == "engine_version";
  const bool is_word = name == "name" || name == "identity" || name == "reason";
  if (name == "exit_code") {
    PointColumn column = empty_column(PointColumn::Kind::kNumber, "");
    Statement select = database_.prepare("SELECT point, exit_code FROM points ORDER BY point");
    merge(select, [&](std::size_t row) { column.numbers[row] = select.real(1); });
    return column;
  }
  if (!of_group && !is_word) return std::nullopt;
  if (!of_group) {
    PointColumn column = empty_column(PointColumn::Kind::kWord, "");
    Words words(column);
    Statement select = database_.prepare("SELECT point, " + name + " FROM points ORDER BY point");
    merge(select, [&](std::size_t row) { column.codes[row] = words.code(select.text(1)); });
    return column;
  }
  const auto text_of = [&](const Group& group) {
    return name == "status"       ? group.status
           : name == "experiment" ? group.experiment
                                  : group.engine_version;
  };
  const bool numbers = std::all_of(groups_.begin(), groups_.end(),
                                   [&](const Group& group) { return is_whole(text_of(group)); });
  PointColumn column =
      empty_column(numbers ? PointColumn::Kind::kNumber : PointColumn::Kind::kWord, "");
  Words words(column);
  std::vector<std::uint32_t> codes;
  for (const Group& group : groups_) codes.push_back(words.code(text_of(group)));
  for (std::size_t row = 0; row < size(); ++row) {
    if (numbers) {
      column.numbers[row] = std::stod(text_of(group(row)));
    } else {
      column.codes[row] = codes[group_of_[row]];
    }
  }
  return column;
}

std::optional<PointColumn> PointTable::quantile(const std::string& name) const {
  const bool low = name.ends_with(".p10");
  if (!low && !name.ends_with(".p90")) return std::nullopt;
  const std::string metric = name.substr(0, name.rfind('.'));
  const std::vector<std::string> known = metrics();
  if (std::find(known.begin(), known.end(), metric) == known.end()) return std::nullopt;
  const MetricInfo* info = find_metric(metric);
  PointColumn column =
      empty_column(PointColumn::Kind::kNumber, info != nullptr ? info->unit : std::string());
  Statement select = database_.prepare(std::string("SELECT point, ") + (low ? "p10" : "p90") +
                                       " FROM intervals WHERE metric = ? ORDER BY point");
  select.bind(1, metric);
  merge(select, [&](std::size_t row) { column.numbers[row] = select.real(1); });
  return column;
}

std::optional<PointColumn> PointTable::configured(const std::string& path) const {
  const Parameter* example = nullptr;
  bool flags = true, numbers = true;
  std::vector<const Parameter*> of_group;
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
  PointColumn column = empty_column(numbers ? Kind::kNumber
                                    : flags ? Kind::kFlag
                                            : Kind::kWord,
                                    example->unit);
  Words words(column);
  const auto set = [&](std::size_t row, const std::string& text, std::optional<double> value) {
    if (column.kind == Kind::kWord) column.codes[row] = words.code(text);
    if (column.kind == Kind::kFlag) column.numbers[row] = text == "true" ? 1 : 0;
    if (column.kind == Kind::kNumber && value) column.numbers[row] = *value;
  };
  for (std::size_t row = 0; row < size(); ++row) {
    const Parameter* parameter = of_group[group_of_[row]];
    if (parameter != nullptr) set(row, parameter->text, parameter->value);
  }
  Statement select =
      database_.prepare("SELECT point, value, text FROM varied WHERE axis = ? ORDER BY point");
  select.bind(1, path);
  merge(select, [&](std::size_t row) {
    const bool number = select.is_integer(1) || select.is_real(1);
    set(row, column.kind == Kind::kNumber ? std::string() : select.text(2),
        number ? std::optional(select.real(1)) : std::nullopt);
  });
  return column;
}

std::vector<std::string> PointTable::metrics() const { return metrics_of_type("REAL"); }

std::vector<std::string> PointTable::labels() const { return metrics_of_type("TEXT"); }

std::vector<std::string> PointTable::metrics_of_type(const char* wanted) const {
  std::set<std::string> names, kinds;
  for (const Group& group : groups_) kinds.insert(group.experiment);
  for (const std::string& kind : kinds)
    for (const auto& [column, type] : column_types(database_, metrics_table(kind)))
      if (type == wanted) names.insert(column);
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
  Statement select = database_.prepare("SELECT DISTINCT axis FROM varied");
  while (select.step()) axes.insert(select.text(0));
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
