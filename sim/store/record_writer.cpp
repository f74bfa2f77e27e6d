// SPDX-License-Identifier: Apache-2.0
#include "sim/store/record_writer.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <utility>

#include "sim/store/record_reader.h"
#include "sim/store/row_groups.h"
#include "sim/store/views.h"
#include "sim/units/comma_separated.h"
#include "sim/units/sha256.h"

namespace orrery {
namespace {

using nlohmann::ordered_json;

/// Values that a point may have otherwise than another one and still be told by them.
constexpr std::size_t kMostVaried = 24;
/// Bases of a kind that a record is compared with.
constexpr std::size_t kMostBases = 4;

std::string json_of(const Configuration& configuration) {
  ordered_json parameters = ordered_json::array();
  for (const Parameter& p : configuration.parameters) {
    parameters.push_back({p.path, p.text, p.unit, p.origin});
    if (p.value) parameters.back().push_back(*p.value);
  }
  return ordered_json{
      {"canonical", configuration.canonical ? *configuration.canonical : ordered_json::object()},
      {"parameters", std::move(parameters)}}
      .dump();
}

/// What tells results with other metrics or labels, or in another order, apart.
std::string layout_of(const RunRecord& record) {
  ordered_json metrics = ordered_json::array(), labels = ordered_json::array();
  for (const Metric& metric : record.metrics)
    if (metric.name != kWallTimeMetric) metrics.push_back({metric.name, metric.unit});
  for (const Label& label : record.labels) labels.push_back(label.name);
  return ordered_json{{"metrics", std::move(metrics)}, {"labels", std::move(labels)}}.dump();
}

/// The same without the effort of JSON.
std::string layout_key(const RunRecord& record) {
  std::string key = record.experiment;
  for (const Metric& metric : record.metrics)
    if (metric.name != kWallTimeMetric) key.append("\n").append(metric.name).append(metric.unit);
  for (const Label& label : record.labels) key.append("\t").append(label.name);
  return key;
}

/// A statement that adds a row with values of these columns.
Statement insertion(const Database& database, std::string_view table,
                    const std::vector<std::string>& columns) {
  const std::string places = comma_joined(columns, [](const std::string&) { return "?"; });
  return database.prepare(
      fmt::format("INSERT INTO {} ({}) VALUES ({})", table, comma_joined(columns), places));
}

/// Adds a row, or finds the one that is there by its first column; gives its id.
std::int64_t intern(Database& database, const char* table, const char* id,
                    const std::vector<std::string>& columns,
                    const std::vector<std::string>& values) {
  Statement find =
      database.prepare(fmt::format("SELECT {} FROM {} WHERE {} = ?", id, table, columns.front()));
  find.bind(1, values.front());
  if (find.step()) return find.integer(0);
  Statement insert = insertion(database, table, columns);
  for (std::size_t i = 0; i < values.size(); ++i) insert.bind(static_cast<int>(i) + 1, values[i]);
  insert.run();
  return database.last_row();
}

/// Numbers as what they are, so that they compare; flags are in their text.
void bind_json(Statement& statement, int parameter, const ordered_json& value) {
  if (value.is_number_float()) {
    statement.bind(parameter, value.get<double>());
  } else if (value.is_number_integer()) {
    statement.bind(parameter, value.get<std::int64_t>());
  } else if (value.is_string()) {
    statement.bind(parameter, value.get<std::string>());
  } else {
    statement.bind(parameter, std::nullopt);
  }
}

}  // namespace

std::string metrics_table(const std::string& experiment) { return "metrics_" + experiment; }

std::string sql_name(const std::string& name) {
  std::string text = "\"";
  for (const char c : name) text.append(c == '"' ? 2 : 1, c);
  return text + "\"";
}

RecordWriter::RecordWriter(Database& database)
    : database_(database),
      seal_(database),
      find_(database.prepare("SELECT point, status, digest FROM points WHERE identity = ?")),
      point_(database.prepare("INSERT INTO points (identity, experiment, name, status, reason, "
                              "exit_code, base, layout, "
                              "provenance, engine_version, digest) "
                              "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)")),
      varied_(database.prepare("INSERT INTO varied (point, position, axis, value, text, origin) "
                               "VALUES (?, ?, ?, ?, ?, ?)")),
      interval_(
          database.prepare("INSERT INTO intervals (point, metric, p10, p90) VALUES (?, ?, ?, ?)")),
      class_(database.prepare("INSERT INTO classes (point, position, name, count, time_s, flops, "
                              "bytes) VALUES (?, ?, ?, ?, ?, ?, ?)")),
      link_(database.prepare("INSERT INTO links (point, scope, position, name, links, bytes, "
                             "busy_share, peak_share) VALUES (?, ?, ?, ?, ?, ?, ?, ?)")),
      attempt_(database.prepare(
          "INSERT INTO attempts (point, n, started, host, wall_s, user_s, system_s, peak_bytes, "
          "exit_code, signal, stderr) "
          "SELECT ?1, (SELECT count(*) FROM attempts WHERE point = ?1), ?2, ?3, ?4, ?5, ?6, ?7, "
          "?8, "
          "?9, ?10 WHERE NOT EXISTS (SELECT 1 FROM attempts WHERE point = ?1 AND started = ?2 AND "
          "host = ?3)")) {}

std::optional<RecordWriter::Stored> RecordWriter::find(std::string_view identity) {
  find_.reset();
  find_.bind(1, identity);
  std::optional<Stored> stored;
  if (find_.step())
    stored =
        Stored{find_.integer(0), stored_status(database_, identity, find_.text(1)), find_.text(2)};
  find_.reset();
  return stored;
}

std::int64_t RecordWriter::insert(const RunRecord& record, const std::string& digest,
                                  const std::string& engine_version, int exit_code) {
  Values& values = values_of(record);
  std::vector<Variation> varied;
  const std::optional<std::int64_t> base = base_of(record, varied);
  point_.bind(1, record.identity).bind(2, record.experiment).bind(3, record.name);
  point_.bind(4, to_string(record.status)).bind(5, record.reason);
  point_.bind(6, std::int64_t{exit_code});
  base ? point_.bind(7, *base) : point_.bind(7, std::nullopt);
  point_.bind(8, values.layout).bind(9, record.provenance.dump());
  point_.bind(10, engine_version).bind(11, digest);
  point_.run();
  const std::int64_t point = last_point_ = database_.last_row();
  insert_values(point, record, values);
  insert_varied(point, varied);
  insert_classes(point, record);
  insert_links(point, "class", record.link_classes);
  insert_links(point, "link", record.links);
  for (const ResultRows& rows : record.rows) insert_rows(point, rows);
  seal_.put(point);
  return point;
}

std::int64_t RecordWriter::id_of(const Configuration& configuration) {
  const std::string json = json_of(configuration);
  return intern(database_, "configurations", "base", {"hash", "json"}, {sha256_hex(json), json});
}

std::optional<std::int64_t> RecordWriter::base_of(const RunRecord& record,
                                                  std::vector<Variation>& varied) {
  if (!record.base) return std::nullopt;
  varied = record.varied;
  std::vector<Base>& bases = bases_[record.experiment];
  for (const Base& known : bases)
    if (known.configuration == record.base) return known.id;
  // One that stands alone may still be told by what it has otherwise than another one.
  for (const Base& known : bases) {
    if (!record.varied.empty()) break;
    if (auto differs = difference(*known.configuration, *record.base, kMostVaried)) {
      varied = std::move(*differs);
      return known.id;
    }
  }
  if (bases.size() == kMostBases) bases.erase(bases.begin());
  bases.push_back({id_of(*record.base), record.base});
  return bases.back().id;
}

RecordWriter::Values& RecordWriter::values_of(const RunRecord& record) {
  const std::string key = layout_key(record);
  const auto known = values_.find(key);
  if (known != values_.end()) return known->second;
  add_columns(record);
  std::vector<std::string> columns = {"point"};
  for (const Metric& metric : record.metrics)
    if (metric.name != kWallTimeMetric) columns.push_back(sql_name(metric.name));
  for (const Label& label : record.labels) columns.push_back(sql_name(label.name));
  const std::int64_t layout = intern(database_, "layouts", "layout", {"json"}, {layout_of(record)});
  const std::string table = sql_name(metrics_table(record.experiment));
  return values_.emplace(key, Values{layout, insertion(database_, table, columns)}).first->second;
}

void RecordWriter::add_columns(const RunRecord& record) {
  const std::string table = metrics_table(record.experiment);
  bool changed = false;
  if (columns_of(database_, table).empty()) {
    const std::string sql = fmt::format(
        "CREATE TABLE {} (point INTEGER PRIMARY KEY REFERENCES points ON DELETE CASCADE) STRICT",
        sql_name(table));
    database_.execute(sql.c_str());
    changed = true;
  }
  const std::vector<std::string> there = columns_of(database_, table);
  const auto add = [&](const std::string& name, const char* type) {
    if (std::find(there.begin(), there.end(), name) != there.end()) return;
    database_.execute(
        ("ALTER TABLE " + sql_name(table) + " ADD COLUMN " + sql_name(name) + type).c_str());
    changed = true;
  };
  for (const Metric& metric : record.metrics)
    if (metric.name != kWallTimeMetric) add(metric.name, " REAL");
  for (const Label& label : record.labels) add(label.name, " TEXT");
  if (changed) update_views(database_);
}

void RecordWriter::insert_values(std::int64_t point, const RunRecord& record, Values& values) {
  int place = 1;
  values.insert.bind(place++, point);
  for (const Metric& metric : record.metrics) {
    if (metric.name == kWallTimeMetric) continue;
    values.insert.bind(place++, metric.value);
    if (!metric.interval) continue;
    interval_.run_with(point, metric.name, metric.interval->first, metric.interval->second);
  }
  for (const Label& label : record.labels) values.insert.bind(place++, label.value);
  values.insert.run();
}

void RecordWriter::insert_varied(std::int64_t point, const std::vector<Variation>& varied) {
  std::int64_t position = 0;
  for (const Variation& other : varied) {
    varied_.bind(1, point).bind(2, position++).bind(3, other.parameter.path);
    bind_json(varied_, 4, ordered_json::parse(other.json));
    varied_.bind(5, other.parameter.text).bind(6, other.parameter.origin);
    varied_.run();
  }
}

void RecordWriter::insert_classes(std::int64_t point, const RunRecord& record) {
  std::int64_t position = 0;
  for (const ClassBreakdown& c : record.classes)
    class_.run_with(point, position++, c.name, static_cast<std::int64_t>(c.count), c.time_s,
                    c.flops, c.bytes);
}

void RecordWriter::insert_links(std::int64_t point, const char* scope,
                                const std::vector<LinkUse>& links) {
  std::int64_t position = 0;
  for (const LinkUse& use : links)
    link_.run_with(point, scope, position++, use.name, static_cast<std::int64_t>(use.links),
                   use.bytes, use.busy_share, use.peak_share);
}

void RecordWriter::insert_rows(std::int64_t point, const ResultRows& rows) {
  const RowTableKind& kind = row_table(rows.name);
  std::vector<std::string> columns = {"point", "position"};
  columns.insert(columns.end(), kind.columns.begin(), kind.columns.begin() + kind.width);
  Statement insert = insertion(database_, kind.name, columns);
  const std::size_t count = rows.values.size() / kind.width;
  for (std::size_t row = 0; row < count; ++row) {
    insert.bind(1, point).bind(2, static_cast<std::int64_t>(row));
    for (std::size_t i = 0; i < kind.width; ++i) {
      const double value = rows.values[row * kind.width + i];
      const int parameter = static_cast<int>(i) + 3;
      std::isnan(value) ? insert.bind(parameter, std::nullopt) : insert.bind(parameter, value);
    }
    insert.run();
  }
}

void RecordWriter::insert_attempt(std::int64_t point, const RunTimes& times) {
  attempt_.bind(1, point).bind(2, times.started).bind(3, times.host).bind(4, times.wall_s);
  attempt_.bind(5, times.user_s).bind(6, times.system_s);
  times.peak_bytes > 0 ? attempt_.bind(7, times.peak_bytes) : attempt_.bind(7, std::nullopt);
  attempt_.bind(8, std::int64_t{times.exit_code}).bind(9, std::int64_t{times.signal});
  attempt_.bind(10, times.stderr_tail);
  attempt_.run();
}

std::vector<RunTimes> RecordWriter::remove(std::int64_t point) {
  std::vector<RunTimes> attempts = read_attempts(database_, point);
  database_.prepare("DELETE FROM points WHERE point = ?").bind(1, point).run();
  return attempts;
}

std::vector<RunTimes> read_attempts(const Database& database, std::int64_t point) {
  std::vector<RunTimes> attempts;
  Statement select = database.prepare(
      "SELECT started, wall_s, host, exit_code, signal, user_s, system_s, peak_bytes, stderr "
      "FROM attempts WHERE point = ? ORDER BY n");
  select.bind(1, point);
  while (select.step()) {
    attempts.push_back({select.text(0), select.real(1), select.text(2),
                        static_cast<int>(select.integer(3)), static_cast<int>(select.integer(4)),
                        select.optional_real(5), select.optional_real(6), select.integer(7),
                        select.text(8)});
  }
  return attempts;
}

void RecordWriter::add_row_groups() {
  // Some 60 ms each; a transaction is to be short, also where many groups are to be made again.
  constexpr std::int64_t kMostAtOnce = 32;
  if (last_point_ + 1 < (next_row_group_ + 1) * kPointsOfGroup) return;
  const std::int64_t next = std::max(next_row_group_, next_row_group(database_));
  next_row_group_ = orrery::add_row_groups(database_, next, kMostAtOnce);
}

void RecordWriter::forget() {
  last_point_ = 0;
  next_row_group_ = 0;
  bases_.clear();
  values_.clear();
}

}  // namespace orrery
