// SPDX-License-Identifier: Apache-2.0
#include "sim/app/questions/points/stored_points.h"

#include <fmt/core.h>
#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "sim/app/experiments/core/exit_codes.h"
#include "sim/app/questions/explain/effects.h"
#include "sim/config/expression.h"
#include "sim/results/metric_table.h"
#include "sim/results/version.h"
#include "sim/units/comma_separated.h"
#include "sim/units/spelling.h"
#include "sim/units/unit_table.h"

namespace orrery {
namespace {

using config::Expression;
using config::ExpressionType;
using config::ExpressionValue;

/// Engines are numbers that count up; other texts go by the alphabet.
bool is_newer(const std::string& a, const std::string& b) {
  if (a.size() != b.size()) return a.size() > b.size();
  return a > b;
}

/// Base units in one of a column's: a metric in ms is compared with durations.
double factor_of(const PointColumn& column) {
  const auto unit = find_unit(column.unit);
  return unit ? unit->in_base_units() : 1;
}

/// Whether a name says its unit: "p99_ttft_ms", "step_time_s.p90".
bool names_its_unit(const std::string& name) {
  return find_metric(name.substr(0, name.rfind(".p"))) != nullptr;
}

ExpressionType type_of(const std::string& name, const PointColumn& column) {
  using Kind = ExpressionType::Kind;
  if (column.kind == PointColumn::Kind::kFlag) return {Kind::kFlag, {}};
  if (column.kind == PointColumn::Kind::kWord) return {Kind::kWord, {}};
  const auto unit = find_unit(column.unit);
  return {Kind::kNumber,
          unit ? unit->dimension : Dimension{},
          {},
          names_its_unit(name) ? factor_of(column) : 0};
}

ExpressionValue value_of(const PointColumn& column, double factor, std::size_t row) {
  if (!column.has(row)) return std::monostate{};
  if (column.kind == PointColumn::Kind::kWord) return column.word(row);
  if (column.kind == PointColumn::Kind::kFlag) return column.numbers[row] != 0;
  return column.numbers[row] * factor;
}

}  // namespace

void StoreChoice::take(Options& options) {
  options.positional("STORE", store, "store of results (SQLite)");
  options.option("--where", where,
                 "condition on points: metrics, quantiles (step_time_s.p90), paths of the "
                 "configuration, with units: \"step_time_s <= 50 ms and parallel.tp == 8\"");
  options.flag("--verify", verify,
               "read all points that count as a whole, and check their checksums: of most points "
               "the columns that are asked for are read, which have their own");
}

StoredPoints::StoredPoints(const StoreChoice& choice, Scope scope)
    : store_(ResultStore::open_read_only(choice.store)), table_(*store_.database()) {
  select_rows(choice, scope);
  if (scope == Scope::kComparable) check_columns(choice.verify);
}

void StoredPoints::check_columns(bool all) {
  if (!all && table_.unchecked().size() > kMostVerified) {
    left_out_ += fmt::format(
        "{} points have no checked columns yet: their checksums were not looked at but of what is "
        "shown; --verify checks all\n",
        table_.unchecked().size());
    return;
  }
  for (const std::size_t row : all ? rows_ : std::vector<std::size_t>{}) record(row);
  for (const std::size_t row : table_.unchecked()) record(row);
}

void StoredPoints::select_groups(const std::vector<std::string>& mentioned, Scope scope) {
  const auto mentions = [&](const char* name) {
    return std::ranges::find(mentioned, name) != mentioned.end();
  };
  const auto& groups = table_.groups();
  std::map<std::string, std::string> newest;  // engine by kind, of results
  for (const PointTable::Group& group : groups) {
    if (group.status != "ok") continue;
    const auto [known, added] = newest.emplace(group.experiment, group.engine_version);
    if (!added && is_newer(group.engine_version, known->second))
      known->second = group.engine_version;
  }
  std::map<std::string, std::size_t> out;  // points that are left out, by what they are
  for (std::size_t i = 0; i < groups.size(); ++i) {
    const PointTable::Group& group = groups[i];
    const bool all = scope == Scope::kAll;
    if (scope == Scope::kFailures) {
      groups_.push_back(group.status == "failed" && group.engine_version == kEngineVersion);
      continue;
    }
    const bool status =
        mentions("status") || group.status == "ok" || (all && group.status != "failed");
    const bool engine = all || mentions("engine_version") || newest.count(group.experiment) == 0 ||
                        newest.at(group.experiment) == group.engine_version;
    groups_.push_back(status && engine);
    if (!status) out[group.status + " points"] += table_.counts()[i];
    if (status && !engine) out["results of engine " + group.engine_version] += table_.counts()[i];
  }
  if (out.empty()) return;
  left_out_ =
      comma_joined(
          out, [](const auto& group) { return fmt::format("{} {}", group.second, group.first); }) +
      " are not looked at\n";
}

void StoredPoints::select_rows(const StoreChoice& choice, Scope scope) {
  config::Diagnostics diagnostics;
  std::optional<Expression> expression;
  std::vector<std::string> names;
  if (!choice.where.empty()) {
    diagnostics.add_source("--where", choice.where);
    expression = Expression::parse(choice.where, {"--where", 1, 1}, diagnostics);
    diagnostics.throw_if_errors();
    for (const Expression::Name& name : expression->names()) names.push_back(name.path);
  }
  select_groups(names, scope);
  const auto columns = table_.columns(names);
  if (expression) {
    std::vector<std::string> known = table_.metrics();
    for (const std::string& path : table_.paths()) known.push_back(path);
    for (const char* name :
         {"name", "identity", "status", "experiment", "engine_version", "exit_code", "reason"})
      known.emplace_back(name);
    std::size_t next = 0;  // bind() asks for the names in their order
    expression->bind(
        [&](const std::string& name) {
          const auto& column = columns[next++];
          return column ? std::optional(type_of(name, *column)) : std::nullopt;
        },
        known, diagnostics);
    diagnostics.throw_if_errors();
  }
  std::vector<double> factors;
  factors.reserve(columns.size());
  for (const auto& column : columns) factors.push_back(column ? factor_of(*column) : 1);
  for (std::size_t row = 0; row < table_.size(); ++row) {
    if (!groups_[table_.group_index(row)]) continue;
    const auto value = [&](std::size_t name) {
      return value_of(*columns[name], factors[name], row);
    };
    if (!expression || expression->holds(value)) rows_.push_back(row);
  }
}

void StoredPoints::refuse(const std::string& name) const {
  std::vector<std::string> known = table_.metrics();
  const std::vector<std::string> paths = table_.paths();
  known.insert(known.end(), paths.begin(), paths.end());
  for (const std::string& path : paths) {  // "system" stands for "system.system"
    const std::size_t dot = path.rfind('.');
    if (dot != std::string::npos && path.substr(0, dot).ends_with(path.substr(dot + 1)))
      known.push_back(path.substr(0, dot));
  }
  throw UsageError(fmt::format("no result of this store has '{}'{}", name,
                               did_you_mean(nearest_name(name, known))));
}

std::vector<PointColumn> StoredPoints::numbers(const std::vector<std::string>& names) const {
  std::vector<PointColumn> columns;
  auto found = table_.columns(names);
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (!found[i]) refuse(names[i]);
    if (found[i]->kind != PointColumn::Kind::kNumber)
      throw UsageError("'" + names[i] + "' is no number, so that nothing is more or less of it");
    columns.push_back(std::move(*found[i]));
  }
  return columns;
}

PointColumn StoredPoints::column(const std::string& name) const {
  auto found = table_.column(name);
  if (!found) refuse(name);
  return std::move(*found);
}

RunRecord StoredPoints::record(std::size_t row) const {
  const std::string identity = store_.database()->text(
      "SELECT identity FROM points WHERE point = " + std::to_string(table_.point(row)));
  std::optional<RunRecord> record = store_.find(identity);
  if (!record)
    throw StoreError(StoreFault::kOther, "a point was taken out of the store while it was read");
  return std::move(*record);
}

std::vector<std::string> without_followers(
    const std::vector<std::string>& paths,
    const std::function<bool(const std::string& name, const std::string& path)>& follows) {
  const auto component = [](const std::string& path) {
    const std::size_t dot = path.rfind('.');
    return dot == std::string::npos ? path : path.substr(dot + 1);
  };
  std::vector<std::string> told;
  for (const std::string& path : paths) {
    bool follower = is_label(path);
    for (const std::string& name : paths) {
      const std::size_t dot = name.rfind('.');
      if (dot == std::string::npos || name == path) continue;
      const std::string above = name.substr(0, dot);
      // "system.system" and "system.accelerator.accelerator" say which one it is.
      const bool names = component(above) == component(name) && path.starts_with(above + ".");
      follower = follower || (names && follows(name, path));
    }
    const std::size_t dot = path.rfind('.');
    const bool is_name =
        dot != std::string::npos && component(path.substr(0, dot)) == component(path);
    if (!follower || (is_name && path.find('.') == dot)) told.push_back(path);
  }
  return told;
}

PointAxes axes_of(const std::vector<RunRecord>& records) {
  std::map<const Configuration*, std::map<std::string, std::string>> bases;
  std::map<std::string, bool> candidates;
  for (const RunRecord& record : records) {
    for (const Variation& varied : record.varied) candidates[varied.parameter.path] = true;
    if (!record.base || bases.count(record.base.get()) > 0) continue;
    auto& texts = bases[record.base.get()];
    for (const Parameter& parameter : record.base->parameters)
      texts[parameter.path] = parameter.text;
  }
  for (const auto& [base, texts] : bases)
    for (const auto& [path, text] : texts) {
      const auto& first = bases.begin()->second;
      const auto other = first.find(path);
      if (other == first.end() || other->second != text) candidates[path] = true;
    }
  std::map<std::string, std::vector<std::string>> columns;
  for (const auto& [path, unused] : candidates) {
    std::vector<std::string> texts;
    for (const RunRecord& record : records) {
      std::string text = "-";
      if (record.base) {
        const auto& known = bases.at(record.base.get());
        if (const auto found = known.find(path); found != known.end()) text = found->second;
      }
      for (const Variation& varied : record.varied)
        if (varied.parameter.path == path) text = varied.parameter.text;
      texts.push_back(std::move(text));
    }
    const bool same =
        std::ranges::all_of(texts, [&](const std::string& text) { return text == texts.front(); });
    if (!same) columns.emplace(path, std::move(texts));
  }
  PointAxes axes;
  for (const auto& [path, texts] : columns) axes.paths.push_back(path);
  axes.paths = without_followers(axes.paths, [&](const std::string& name, const std::string& path) {
    std::map<std::string, std::string> of_name;
    for (std::size_t i = 0; i < records.size(); ++i) {
      const std::string& text = columns.at(path)[i];
      if (of_name.emplace(columns.at(name)[i], text).first->second != text) return false;
    }
    return true;
  });
  for (const std::string& path : axes.paths) axes.texts.push_back(columns.at(path));
  return axes;
}

std::string short_identity(const std::string& identity) { return identity.substr(0, 12); }

}  // namespace orrery
