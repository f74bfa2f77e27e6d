// SPDX-License-Identifier: Apache-2.0
#include "validation/checks/published.h"

#include <filesystem>
#include <nlohmann/json.hpp>

#include "sim/app/experiments/core/settings.h"
#include "sim/app/experiments/files/file_kind.h"
#include "sim/config/csv.h"
#include "sim/config/load.h"
#include "sim/config/output.h"
#include "sim/results/metric_table.h"
#include "sim/units/spelling.h"
#include "sim/units/text.h"

namespace orrery {

using config::Schema;

const Schema<PublishedRow>& PublishedRow::schema() {
  static const auto schema =
      Schema<PublishedRow>("published",
                           "a published measurement and the experiment that predicts it")
          .required("id", &PublishedRow::id, "name of the row")
          .required("experiment", &PublishedRow::experiment, "an experiment: path or inline")
          .optional("set", &PublishedRow::set, "path: value, laid over the experiment")
          .optional("over", &PublishedRow::over,
                    "path: value, laid over the experiment after `set`: `measured` is the ratio of "
                    "the metric to that of this other experiment")
          .required("metric", &PublishedRow::metric,
                    "metric to compare (`orrery describe metrics`)")
          .required("measured", &PublishedRow::measured, "published value, in `unit`")
          .optional("unit", &PublishedRow::unit,
                    "unit of `measured`; default: that of the metric, of a ratio 1")
          .optional("tolerance", &PublishedRow::tolerance,
                    "relative error above which the row is marked", config::positive())
          .required("source", &PublishedRow::source, "where it was published")
          .optional(
              "rows", &PublishedRow::rows,
              "CSV file: one entry a row, {column} in the other values standing for its cells");
  return schema;
}

std::string PublishedRow::compared_unit() const {
  return is_ratio() ? "1" : find_metric(metric)->unit;
}

namespace {

std::string substitute(std::string text, const config::CsvRow& row) {
  for (const auto& [column, cell] : row) {
    const std::string placeholder = "{" + column + "}";
    for (auto at = text.find(placeholder); at != std::string::npos;
         at = text.find(placeholder, at + cell.size())) {
      text.replace(at, placeholder.size(), cell);
    }
  }
  return text;
}

config::Node substitute(const config::Node& node, const config::CsvRow& row) {
  if (node.is_scalar()) {
    const std::string text = substitute(node.text(), row);
    // A quoted "{seconds}" must be able to become a number.
    return config::Node::scalar(text, node.origin(), node.quoted() && text == node.text());
  }
  if (node.is_sequence()) {
    config::Node copy = config::Node::sequence(node.origin());
    for (const config::Node& item : node.items()) copy.append(substitute(item, row));
    return copy;
  }
  if (!node.is_map()) return node;
  config::Node copy = config::Node::map(node.origin());
  for (const auto& entry : node.entries())
    copy.set(entry.key, substitute(entry.value, row), entry.key_origin);
  return copy;
}

/// The entry itself, or one for every row of its CSV file.
std::vector<config::Node> instances(const config::Node& entry, const std::string& path) {
  const config::Node* rows = entry.find("rows");
  if (rows == nullptr || !rows->is_scalar()) return {entry};
  std::vector<config::Node> nodes;
  const std::string table = config::relative_to(rows->text(), path);
  if (!std::filesystem::exists(table)) {
    config::throw_located(config::KeyError("rows", "no such file '" + rows->text() + "'"), entry);
  }
  for (const config::CsvRow& row : config::read_csv(table)) {
    config::Node node = substitute(entry, row);
    node.erase("rows");
    nodes.push_back(std::move(node));
  }
  return nodes;
}

/// Measured value in the unit that is compared: equal ones, or two of a dimension ("ms" and "s").
double in_compared_unit(const PublishedRow& row) {
  const std::string unit = row.compared_unit();
  if (row.unit.empty() || row.unit == unit) return row.measured;
  const std::string text = print_number(row.measured) + " " + row.unit;
  try {
    if (unit == "s") return parse<Seconds>(text).base();
    if (unit == "B") return parse<Bytes>(text).base();
    if (unit == "B/s") return parse<BytesPerSecond>(text).base();
    if (unit == "FLOP/s") return parse<FlopsPerSecond>(text).base();
    if (unit == "W") return parse<Watts>(text).base();
    if (unit == "J") return parse<Joules>(text).base();
  } catch (const UnitError& error) {
    throw config::KeyError("unit", error.what(), {error.suggestion(), {}});
  }
  const std::string of = row.is_ratio() ? "a ratio of " : "";
  throw config::KeyError(
      "unit", "'" + row.unit + "' is not the unit of " + of + row.metric + " (" + unit + ")");
}

/// The experiment that a ratio divides by.
/// @throws config::ConfigError also where it is the row's own, of which every ratio is 1
LoadedExperiment load_divisor(const PublishedPoint& point, SettingList settings,
                              const config::Node& node, config::Diagnostics& diagnostics,
                              const config::Library& library) {
  for (config::Assignment& setting : settings_of(*node.find("over")))
    settings.push_back(std::move(setting));
  LoadedExperiment divisor =
      load_point_with_settings(*node.find("experiment"), settings, diagnostics, library);
  diagnostics.throw_if_errors();
  if (divisor.identity == point.loaded.identity)
    config::throw_located(config::KeyError("over", "changes nothing: the ratio would be 1"), node);
  divisor.experiment->name = point.row.id;
  return divisor;
}

PublishedPoint load_row(const config::Node& node, config::Diagnostics& diagnostics,
                        const config::Library& library) {
  PublishedPoint point;
  point.row = config::read<PublishedRow>(node, diagnostics, library);
  diagnostics.throw_if_errors();
  const MetricInfo* metric = find_metric(point.row.metric);
  if (metric == nullptr) {
    std::vector<std::string> known;
    for (const auto& [other_name, other] : metric_table()) known.emplace_back(other.name);
    config::report(config::KeyError(
                       "metric", "unknown metric '" + point.row.metric + "'",
                       {nearest_name(point.row.metric, known), {"see `orrery describe metrics`"}}),
                   node, diagnostics);
    diagnostics.throw_if_errors();
  }
  try {
    point.measured = in_compared_unit(point.row);
  } catch (const config::KeyError& error) {
    config::throw_located(error, node);
  }
  const config::Node* set = node.find("set");
  const SettingList settings = set != nullptr ? settings_of(*set) : SettingList{};
  point.loaded = load_point_with_settings(*node.find("experiment"), settings, diagnostics, library);
  diagnostics.throw_if_errors();
  point.loaded.experiment->name = point.row.id;
  if (node.find("over") != nullptr)
    point.over = load_divisor(point, settings, node, diagnostics, library);
  return point;
}

}  // namespace

std::vector<PublishedPoint> load_published(const std::string& path,
                                           const config::Library& library) {
  config::Diagnostics diagnostics;
  const config::Node file = config::load_file(path, diagnostics, library);
  if (!diagnostics.has_errors() && !file.is_sequence()) {
    diagnostics.error(file.where(), 1,
                      "expected a list of published rows: - {id: ..., experiment: ..., ...}");
  }
  diagnostics.throw_if_errors();
  std::vector<PublishedPoint> points;
  for (const config::Node& entry : file.items()) {
    for (const config::Node& node : instances(entry, path)) {
      points.push_back(load_row(node, diagnostics, library));
    }
  }
  return points;
}

namespace {

const RegisterFileKind registered_published(
    "published", {"a list of published rows",
                  "validate published",
                  {},
                  [](const config::Node& own) { return own.is_sequence() ? 100 : 0; },
                  [](const std::string& path) {
                    load_published(path);
                    return std::string();
                  },
                  {},
                  [] { return config::json_schema_of_list(PublishedRow::schema().record()); }});

}  // namespace

}  // namespace orrery
