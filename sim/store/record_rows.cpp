// SPDX-License-Identifier: Apache-2.0
#include "sim/store/record_rows.h"

#include <exception>
#include <tuple>

#include "sim/results/version.h"

namespace orrery {
namespace {

constexpr const char* kClassScope = "class";
constexpr const char* kLinkScope = "link";

void insert_metrics(Database& database, std::int64_t point, const RunRecord& record) {
  Statement insert = database.prepare(
      "INSERT INTO metrics (point, name, position, value, text, unit, p10, p90) "
      "VALUES (?, ?, ?, ?, ?, ?, ?, ?)");
  std::int64_t position = 0;
  for (const Metric& metric : record.metrics) {
    if (metric.name == kWallTimeMetric) continue;
    std::optional<double> p10, p90;
    if (metric.interval) std::tie(p10, p90) = *metric.interval;
    insert.bind(1, point).bind(2, metric.name).bind(3, position++).bind(4, metric.value);
    insert.bind(6, metric.unit).bind(7, p10).bind(8, p90);
    insert.run();
  }
  insert.bind(4, std::nullopt).bind(6, "").bind(7, std::nullopt).bind(8, std::nullopt);
  for (const Label& label : record.labels) {
    insert.bind(1, point).bind(2, label.name).bind(3, position++).bind(5, label.value);
    insert.run();
  }
}

void insert_classes(Database& database, std::int64_t point, const RunRecord& record) {
  Statement insert = database.prepare(
      "INSERT INTO classes (point, position, name, count, time_s, flops, bytes) "
      "VALUES (?, ?, ?, ?, ?, ?, ?)");
  std::int64_t position = 0;
  for (const ClassBreakdown& c : record.classes) {
    insert.bind(1, point).bind(2, position++).bind(3, c.name);
    insert.bind(4, static_cast<std::int64_t>(c.count));
    insert.bind(5, c.time_s).bind(6, c.flops).bind(7, c.bytes);
    insert.run();
  }
}

void insert_links(Database& database, std::int64_t point, const char* scope,
                  const std::vector<LinkUse>& links) {
  Statement insert = database.prepare(
      "INSERT INTO links (point, scope, position, name, links, bytes, busy_share, peak_share) "
      "VALUES (?, ?, ?, ?, ?, ?, ?, ?)");
  std::int64_t position = 0;
  for (const LinkUse& use : links) {
    insert.bind(1, point).bind(2, scope).bind(3, position++).bind(4, use.name);
    insert.bind(5, static_cast<std::int64_t>(use.links)).bind(6, use.bytes);
    insert.bind(7, use.busy_share).bind(8, use.peak_share);
    insert.run();
  }
}

void insert_parameters(Database& database, std::int64_t point, const RunRecord& record) {
  Statement insert = database.prepare(
      "INSERT INTO parameters (point, position, path, value, unit, text, origin) "
      "VALUES (?, ?, ?, ?, ?, ?, ?)");
  std::int64_t position = 0;
  for (const Parameter& p : record.parameters) {
    insert.bind(1, point).bind(2, position++).bind(3, p.path).bind(4, p.value);
    insert.bind(5, p.unit).bind(6, p.text).bind(7, p.origin);
    insert.run();
  }
}

}  // namespace

RecordReader::RecordReader(Database& database)
    : point_(database.prepare("SELECT point, identity, experiment, name, status, reason, "
                              "configuration, provenance, digest FROM points WHERE identity = ?")),
      next_(database.prepare("SELECT min(identity) FROM points WHERE identity > ?")),
      metrics_(database.prepare("SELECT name, value, text, unit, p10, p90 FROM metrics "
                                "WHERE point = ? ORDER BY position")),
      classes_(database.prepare("SELECT name, count, time_s, flops, bytes FROM classes "
                                "WHERE point = ? ORDER BY position")),
      parameters_(database.prepare("SELECT path, value, unit, text, origin FROM parameters "
                                   "WHERE point = ? ORDER BY position")) {
  if (database.integer("SELECT count(*) FROM sqlite_schema WHERE name = 'links'") == 0) return;
  links_ = database.prepare(
      "SELECT name, links, bytes, busy_share, peak_share FROM links "
      "WHERE point = ? AND scope = ? ORDER BY position");
}

std::optional<RunRecord> RecordReader::find(std::string_view identity) {
  point_.reset();
  point_.bind(1, identity);
  if (!point_.step()) return std::nullopt;
  RunRecord record;
  const std::int64_t point = point_.integer(0);
  record.identity = point_.text(1);
  record.experiment = point_.text(2);
  record.name = point_.text(3);
  record.reason = point_.text(5);
  const std::string digest = point_.text(8);
  try {
    record.status = run_status_from(point_.text(4));
    record.configuration = nlohmann::ordered_json::parse(point_.text(6));
    record.provenance = nlohmann::ordered_json::parse(point_.text(7));
  } catch (const std::exception& error) {
    throw StoreError(StoreFault::kCorrupt, "result " + record.identity + ": " + error.what());
  }
  read_metrics(point, record);
  read_classes(point, record);
  read_links(point, kClassScope, record.link_classes);
  read_links(point, kLinkScope, record.links);
  read_parameters(point, record);
  // Only now: all reads of a connection see the state that its first open statement saw.
  point_.reset();
  if (result_digest(record) != digest) {
    throw StoreError(StoreFault::kCorrupt, "result " + record.identity + " (" + record.name +
                                               ") does not match its digest");
  }
  return record;
}

std::optional<std::string> RecordReader::next_identity(std::string_view identity) {
  next_.bind(1, identity);
  next_.step();
  std::optional<std::string> next;
  if (!next_.is_null(0)) next = next_.text(0);
  next_.reset();
  return next;
}

void RecordReader::read_metrics(std::int64_t point, RunRecord& record) {
  metrics_.bind(1, point);
  while (metrics_.step()) {
    if (!metrics_.is_null(2)) {
      record.labels.push_back({metrics_.text(0), metrics_.text(2)});
      continue;
    }
    Metric metric{metrics_.text(0), metrics_.real(1), metrics_.text(3)};
    if (!metrics_.is_null(4)) metric.interval = {metrics_.real(4), metrics_.real(5)};
    record.metrics.push_back(std::move(metric));
  }
  metrics_.reset();
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
  if (!links_) return;
  links_->bind(1, point).bind(2, scope);
  while (links_->step()) {
    links.push_back({links_->text(0), static_cast<std::uint64_t>(links_->integer(1)),
                     links_->real(2), links_->real(3), links_->real(4)});
  }
  links_->reset();
}

void RecordReader::read_parameters(std::int64_t point, RunRecord& record) {
  parameters_.bind(1, point);
  while (parameters_.step()) {
    record.parameters.push_back({parameters_.text(0), parameters_.text(3),
                                 parameters_.optional_real(1), parameters_.text(2),
                                 parameters_.text(4)});
  }
  parameters_.reset();
}

std::int64_t insert_record(Database& database, const RunRecord& record) {
  Statement insert = database.prepare(
      "INSERT INTO points (identity, experiment, name, status, reason, configuration, provenance, "
      "engine_version, digest) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)");
  insert.bind(1, record.identity).bind(2, record.experiment).bind(3, record.name);
  insert.bind(4, to_string(record.status)).bind(5, record.reason);
  insert.bind(6, record.configuration.dump()).bind(7, record.provenance.dump());
  insert.bind(8, kEngineVersion).bind(9, result_digest(record));
  insert.run();
  const std::int64_t point = database.last_row();
  insert_metrics(database, point, record);
  insert_classes(database, point, record);
  insert_links(database, point, kClassScope, record.link_classes);
  insert_links(database, point, kLinkScope, record.links);
  insert_parameters(database, point, record);
  return point;
}

void insert_run(Database& database, std::int64_t point, const RunTimes& times) {
  Statement insert = database.prepare(
      "INSERT OR IGNORE INTO runs (point, started, wall_s, host) VALUES (?, ?, ?, ?)");
  insert.bind(1, point).bind(2, times.started).bind(3, times.wall_s).bind(4, times.host);
  insert.run();
}

}  // namespace orrery
