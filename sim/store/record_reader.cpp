// SPDX-License-Identifier: Apache-2.0
#include "sim/store/record_reader.h"

#include <fmt/core.h>

#include <cmath>
#include <exception>
#include <nlohmann/json.hpp>
#include <span>
#include <utility>

#include "sim/results/record_bytes.h"
#include "sim/store/record_writer.h"
#include "sim/units/comma_separated.h"
#include "sim/units/sha256.h"

namespace orrery {
namespace {

using nlohmann::ordered_json;

Configuration configuration_of(const std::string& text) {
  const ordered_json json = ordered_json::parse(text);
  Configuration configuration;
  configuration.canonical = std::make_shared<const ordered_json>(json.at("canonical"));
  for (const ordered_json& p : json.at("parameters")) {
    configuration.parameters.push_back({p.at(0), p.at(1), std::nullopt, p.at(2), p.at(3)});
    if (p.size() > 4) configuration.parameters.back().value = p.at(4).get<double>();
  }
  return configuration;
}

/// The parameter of the base that a path names.
const Parameter& base_parameter(const RunRecord& record, const std::string& path) {
  for (const Parameter& parameter : record.base->parameters)
    if (parameter.path == path) return parameter;
  throw StoreError(StoreFault::kCorrupt,
                   fmt::format("result {} varies {}, which its configuration does not have",
                               record.identity, path));
}

}  // namespace

RunStatus stored_status(const Database& database, std::string_view identity,
                        const std::string& word) {
  try {
    return run_status_from(word);
  } catch (const std::invalid_argument& error) {
    database.refuse(StoreFault::kForeign,
                    fmt::format("result {} has an {}", identity, error.what()));
  }
}

RecordReader::RecordReader(Database& database)
    : database_(database),
      seal_(database),
      status_(database.prepare("SELECT status FROM points WHERE identity = ?")),
      point_(database.prepare("SELECT point, identity, experiment, name, status, reason, base, "
                              "layout, provenance, digest FROM points WHERE identity = ?")),
      next_(database.prepare("SELECT min(identity) FROM points WHERE identity > ?")),
      intervals_(database.prepare("SELECT metric, p10, p90 FROM intervals WHERE point = ?")),
      varied_(database.prepare("SELECT axis, value, text, origin FROM varied WHERE point = ? "
                               "ORDER BY position")),
      classes_(database.prepare("SELECT name, count, time_s, flops, bytes FROM classes "
                                "WHERE point = ? ORDER BY position")),
      links_(database.prepare("SELECT name, links, bytes, busy_share, peak_share FROM links "
                              "WHERE point = ? AND scope = ? ORDER BY position")) {
  for (const RowTableKind& kind : kRowTables) {
    const std::string names = comma_joined(std::span(kind.columns.data(), kind.width));
    rows_.push_back(database.prepare(
        fmt::format("SELECT {} FROM {} WHERE point = ? ORDER BY position", names, kind.name)));
  }
}

std::optional<RunStatus> RecordReader::status(std::string_view identity) {
  status_.reset();
  status_.bind(1, identity);
  std::optional<RunStatus> status;
  if (status_.step()) status = stored_status(database_, identity, status_.text(0));
  status_.reset();
  return status;
}

std::optional<RunRecord> RecordReader::find(std::string_view identity) {
  point_.reset();
  point_.bind(1, identity);
  if (!point_.step()) return std::nullopt;
  RunRecord record;
  record.identity = point_.text(1);
  record.experiment = point_.text(2);
  record.name = point_.text(3);
  record.reason = point_.text(5);
  const std::string digest = point_.text(9);
  const bool sealed = seal_.holds(point_.integer(0), identity);
  try {
    record.status = stored_status(database_, identity, point_.text(4));
    record.provenance = ordered_json::parse(point_.text(8));
    read_all(record);
  } catch (const StoreError&) {
    throw;
  } catch (const std::exception& error) {
    database_.refuse(StoreFault::kCorrupt, "result " + record.identity + ": " + error.what());
  }
  // Only now: all reads of a connection see the state that its first open statement saw.
  point_.reset();
  if (!sealed || result_digest(record) != digest)
    database_.refuse(StoreFault::kCorrupt, fmt::format("result {} ({}) does not match its digest",
                                                       record.identity, record.name));
  return record;
}

void RecordReader::read_all(RunRecord& record) {
  const std::int64_t point = point_.integer(0);
  if (!point_.is_null(6)) record.base = configuration(point_.integer(6));
  read_values(point, point_.integer(7), record);
  if (record.base) read_varied(point, record);
  read_classes(point, record);
  read_links(point, "class", record.link_classes);
  read_links(point, "link", record.links);
  read_rows(point, record);
}

void RecordReader::read_rows(std::int64_t point, RunRecord& record) {
  for (std::size_t i = 0; i < rows_.size(); ++i) {
    const RowTableKind& kind = kRowTables[i];
    ResultRows rows{std::string(kind.name), {}};
    rows_[i].bind(1, point);
    while (rows_[i].step()) {
      for (std::size_t column = 0; column < kind.width; ++column) {
        const auto at = static_cast<int>(column);
        rows.values.push_back(rows_[i].is_null(at) ? std::nan("") : rows_[i].real(at));
      }
    }
    rows_[i].reset();
    if (!rows.values.empty()) record.rows.push_back(std::move(rows));
  }
}

std::optional<std::string> RecordReader::next_identity(std::string_view identity) {
  next_.bind(1, identity);
  next_.step();
  std::optional<std::string> next;
  if (!next_.is_null(0)) next = next_.text(0);
  next_.reset();
  return next;
}

std::shared_ptr<const Configuration> RecordReader::configuration(std::int64_t base) {
  std::shared_ptr<const Configuration>& known = configurations_[base];
  if (!known) known = read_configuration(database_, base);
  return known;
}

std::shared_ptr<const Configuration> read_configuration(const Database& database,
                                                        std::int64_t base) {
  Statement select = database.prepare("SELECT json, hash FROM configurations WHERE base = ?");
  select.bind(1, base);
  if (!select.step() || sha256_hex(select.text(0)) != select.text(1))
    database.refuse(StoreFault::kCorrupt, "a configuration does not match its hash");
  return std::make_shared<const Configuration>(configuration_of(select.text(0)));
}

RecordReader::Values& RecordReader::values(const std::string& experiment, std::int64_t layout) {
  const auto known = values_.find({experiment, layout});
  if (known != values_.end()) return known->second;
  Statement select = database_.prepare("SELECT json FROM layouts WHERE layout = ?");
  select.bind(1, layout);
  select.step();
  const ordered_json json = ordered_json::parse(select.text(0));
  std::vector<Metric> metrics;
  std::vector<Label> labels;
  std::string columns = "point";
  for (const ordered_json& metric : json.at("metrics")) {
    metrics.push_back({metric.at(0), 0, metric.at(1)});
    columns += ", " + sql_name(metrics.back().name);
  }
  for (const ordered_json& label : json.at("labels")) {
    labels.push_back({label, ""});
    columns += ", " + sql_name(labels.back().name);
  }
  Statement values = database_.prepare(fmt::format("SELECT {} FROM {} WHERE point = ?", columns,
                                                   sql_name(metrics_table(experiment))));
  return values_
      .emplace(std::pair(experiment, layout),
               Values{std::move(metrics), std::move(labels), std::move(values)})
      .first->second;
}

void RecordReader::read_values(std::int64_t point, std::int64_t layout, RunRecord& record) {
  Values& of = values(record.experiment, layout);
  record.metrics = of.metrics;
  record.labels = of.labels;
  of.select.reset();
  of.select.bind(1, point);
  of.select.step();
  int column = 1;
  for (Metric& metric : record.metrics) metric.value = of.select.real(column++);
  for (Label& label : record.labels) label.value = of.select.text(column++);
  of.select.reset();
  intervals_.bind(1, point);
  while (intervals_.step()) {
    const std::string name = intervals_.text(0);
    for (Metric& metric : record.metrics)
      if (metric.name == name) metric.interval = {intervals_.real(1), intervals_.real(2)};
  }
  intervals_.reset();
}

void RecordReader::read_varied(std::int64_t point, RunRecord& record) {
  varied_.bind(1, point);
  while (varied_.step()) {
    Parameter parameter = base_parameter(record, varied_.text(0));
    parameter.value.reset();
    parameter.text = varied_.text(2);
    parameter.origin = varied_.text(3);
    ordered_json value;
    if (varied_.is_integer(1)) {
      value = varied_.integer(1);
    } else if (varied_.is_real(1)) {
      value = varied_.real(1);
    } else if (varied_.is_null(1)) {
      value = parameter.text == "true";
    } else {
      value = varied_.text(1);
    }
    if (value.is_number()) parameter.value = value.get<double>();
    record.varied.push_back({std::move(parameter), value.dump()});
  }
  varied_.reset();
}

void RecordReader::read_classes(std::int64_t point, RunRecord& record) {
  classes_.bind(1, point);
  while (classes_.step()) {
    record.classes.push_back({classes_.text(0), static_cast<std::uint64_t>(classes_.integer(1)),
                              classes_.real(2), classes_.real(3), classes_.real(4)});
  }
  classes_.reset();
}

void RecordReader::read_links(std::int64_t point, const char* scope, std::vector<LinkUse>& links) {
  links_.bind(1, point).bind(2, scope);
  while (links_.step()) {
    links.push_back({links_.text(0), static_cast<std::uint64_t>(links_.integer(1)), links_.real(2),
                     links_.real(3), links_.real(4)});
  }
  links_.reset();
}

}  // namespace orrery
