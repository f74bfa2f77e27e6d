// SPDX-License-Identifier: Apache-2.0
#include "sim/store/views.h"

#include <fmt/core.h>

#include <algorithm>
#include <map>

#include "sim/results/metric_table.h"
#include "sim/results/run_record.h"
#include "sim/store/record_writer.h"

namespace orrery {
namespace {

constexpr const char* kParameters = R"sql(CREATE VIEW v_parameters AS
SELECT points.identity, points.name, points.experiment,
  json_extract(p.value, '$[0]') AS path,
  CASE WHEN varied.point IS NULL THEN json_extract(p.value, '$[4]')
       WHEN typeof(varied.value) IN ('integer', 'real') THEN varied.value END AS value,
  json_extract(p.value, '$[2]') AS unit,
  coalesce(varied.text, json_extract(p.value, '$[1]')) AS text,
  coalesce(varied.origin, json_extract(p.value, '$[3]')) AS origin
FROM points JOIN configurations USING (base)
JOIN json_each(configurations.json, '$.parameters') AS p
LEFT JOIN varied ON varied.point = points.point AND varied.axis = json_extract(p.value, '$[0]'))sql";

std::vector<std::string> metrics_tables(const Database& database) {
  std::vector<std::string> tables;
  Statement select = database.prepare(
      "SELECT name FROM sqlite_schema WHERE type = 'table' AND name GLOB 'metrics_*' ORDER BY "
      "name");
  while (select.step()) tables.push_back(select.text(0));
  return tables;
}

/// One look-up by the point in the table of each kind of experiment.
std::string view_of_runs(const Database& database) {
  std::map<std::string, std::string> found;  // where a metric is, by its name
  std::string joins;
  for (const std::string& table : metrics_tables(database)) {
    joins += fmt::format(" LEFT JOIN {} USING (point)", sql_name(table));
    for (const std::string& column : columns_of(database, table)) {
      std::string& places = found[column];
      places += (places.empty() ? "" : ", ") + sql_name(table) + "." + sql_name(column);
    }
  }
  std::string sql =
      "CREATE VIEW v_runs AS SELECT identity, experiment, name, status, reason, engine_version";
  const auto add = [&sql](const std::string& name, const std::string& places) {
    const bool several = places.find(", ") != std::string::npos;
    sql += ", " + (several ? "coalesce(" + places + ")" : places) + " AS " + sql_name(name);
  };
  found.erase("point");
  for (const auto& [metric, info] : metric_table()) {
    if (metric == kWallTimeMetric) continue;
    const auto places = found.find(metric);
    add(metric, places == found.end() ? "NULL" : places->second);
    if (places != found.end()) found.erase(places);
  }
  for (const auto& [name, places] : found) add(name, places);
  // Once a point, and left out by SQLite where nobody asks for it.
  return sql + ", attempts.wall_s AS wall_time_s FROM points" + joins +
         " LEFT JOIN attempts ON attempts.point = points.point AND attempts.n = 0";
}

/// The best result of each kind by each metric that has a better end: times are best where they are
/// least, rates where they are most. Asked for one metric, SQLite looks at that alone.
std::string view_of_best(const Database& database) {
  std::string sql;
  for (const std::string& table : metrics_tables(database)) {
    for (const std::string& column : columns_of(database, table)) {
      const MetricInfo* metric = find_metric(column);
      if (metric == nullptr || metric->follows == Follows::kNothing) continue;
      const bool least = metric->follows == Follows::kTime;
      const std::string best = fmt::format("{}({})", least ? "min" : "max", sql_name(column));
      sql += sql.empty() ? "CREATE VIEW v_best AS " : " UNION ALL ";
      sql += fmt::format(
          "SELECT '{}' AS metric, '{}' AS best, {} AS value, '{}' AS unit, experiment, name, "
          "identity FROM {} JOIN points USING (point) WHERE status = 'ok' HAVING {} IS NOT NULL",
          column, least ? "least" : "most", best, metric->unit, sql_name(table), best);
    }
  }
  return sql.empty() ? "CREATE VIEW v_best AS SELECT NULL AS metric WHERE 0" : sql;
}

/// Failures with their last attempt: the other columns of a group are those of the row with max(n).
constexpr const char* kFailures = R"sql(CREATE VIEW v_failures AS
SELECT identity, experiment, name, reason, count(*) AS attempts, max(n) AS last, started, host,
  wall_s, user_s, system_s, peak_bytes, attempts.exit_code, signal, stderr, engine_version
FROM points JOIN attempts USING (point) WHERE status = 'failed' GROUP BY points.point)sql";

void update_view(Database& database, const std::string& name, const std::string& sql) {
  if (database.text("SELECT sql FROM sqlite_schema WHERE name = '" + name + "'") == sql) return;
  database.execute(("DROP VIEW IF EXISTS " + name).c_str());
  database.execute(sql.c_str());
}

}  // namespace

std::vector<std::string> columns_of(const Database& database, const std::string& table) {
  std::vector<std::string> columns;
  for (auto& [name, type] : column_types(database, table)) columns.push_back(std::move(name));
  return columns;
}

std::vector<std::pair<std::string, std::string>> column_types(const Database& database,
                                                              const std::string& table) {
  std::vector<std::pair<std::string, std::string>> columns;
  Statement select = database.prepare("SELECT name, type FROM pragma_table_info(?)");
  select.bind(1, table);
  while (select.step()) columns.emplace_back(select.text(0), select.text(1));
  return columns;
}

void update_views(Database& database) {
  update_view(database, "v_runs", view_of_runs(database));
  update_view(database, "v_parameters", kParameters);
  update_view(database, "v_best", view_of_best(database));
  update_view(database, "v_failures", kFailures);
}

}  // namespace orrery
