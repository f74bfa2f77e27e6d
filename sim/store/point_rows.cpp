// SPDX-License-Identifier: Apache-2.0
#include "sim/store/point_rows.h"

#include <algorithm>
#include <set>
#include <string>

#include "sim/store/record_writer.h"
#include "sim/store/views.h"

namespace orrery {
namespace {

/// The column of a table that the key of a source stands in.
std::string key_column(const std::string& table) {
  return table == "intervals" ? "metric" : table == "varied" ? "axis" : "";
}

/// The first name of a group of sources that one statement reads.
bool same_pass(const ColumnSource& a, const ColumnSource& b) {
  return a.table == b.table && a.key == b.key;
}

Statement select_of(const Database& database, PointSpan range,
                    const std::vector<ColumnRead>& reads) {
  const ColumnSource& source = reads.front().source;
  const std::string key = key_column(source.table);
  std::string sql = "SELECT point";
  for (const ColumnRead& read : reads) sql.append(", ").append(sql_name(read.source.column));
  sql.append(" FROM ").append(sql_name(source.table)).append(" WHERE point >= ? AND point < ?");
  if (!key.empty()) sql.append(" AND ").append(key).append(" = ?");
  Statement select = database.prepare(sql + " ORDER BY point");
  select.bind(1, range.first).bind(2, range.last);
  if (!key.empty()) select.bind(3, source.key);
  return select;
}

void read_pass(const Database& database, PointSpan range, const std::vector<std::int64_t>& points,
               const std::vector<ColumnRead>& reads, std::size_t first) {
  Statement select = select_of(database, range, reads);
  std::size_t row = 0;
  while (select.step()) {
    const std::int64_t point = select.integer(0);
    while (row < points.size() && points[row] < point) ++row;
    if (row == points.size()) break;
    if (points[row] != point) continue;
    for (std::size_t i = 0; i < reads.size(); ++i) {
      const int column = static_cast<int>(i) + 1;
      ColumnBuilder& into = *reads[i].into;
      if (into.is_words()) {
        if (!select.is_null(column)) into.set(first + row, select.text(column));
      } else if (select.is_integer(column) || select.is_real(column)) {
        into.set(first + row, select.real(column));
      }
    }
  }
}

std::vector<std::string> different(const Database& database, PointSpan range,
                                   const std::string& column, const std::string& table) {
  Statement select = database.prepare("SELECT DISTINCT " + column + " FROM " + table +
                                      " WHERE point >= ? AND point < ? ORDER BY 1");
  select.bind(1, range.first).bind(2, range.last);
  std::vector<std::string> values;
  while (select.step()) values.push_back(select.text(0));
  return values;
}

}  // namespace

bool is_word_type(const std::string& type) { return type == "TEXT"; }

std::vector<std::string> varied_axes(const Database& database, PointSpan range) {
  return different(database, range, "axis", "varied");
}

PointList read_points(const Database& database, PointSpan range) {
  PointList list;
  Statement select = database.prepare(
      "SELECT point, status, experiment, engine_version, base FROM points "
      "WHERE point >= ? AND point < ? ORDER BY point");
  select.bind(1, range.first).bind(2, range.last);
  while (select.step()) {
    // SQLite goes from row to row and looks at no number: a changed one is another row's, too.
    if (!list.points.empty() && select.integer(0) <= list.points.back())
      database.refuse(StoreFault::kCorrupt, "the points are out of order: the store is damaged");
    const PointKind group{select.text(1), select.text(2), select.text(3), select.integer(4)};
    if (list.groups.empty() || !(list.groups[list.group_of.back()] == group)) {
      const auto known = std::find(list.groups.begin(), list.groups.end(), group);
      list.group_of.push_back(static_cast<std::uint32_t>(known - list.groups.begin()));
      if (known == list.groups.end()) list.groups.push_back(group);
    } else {
      list.group_of.push_back(list.group_of.back());
    }
    list.points.push_back(select.integer(0));
  }
  return list;
}

void read_rows(const Database& database, PointSpan range, const std::vector<std::int64_t>& points,
               const std::vector<ColumnRead>& reads, std::size_t first) {
  std::vector<bool> done(reads.size());
  for (std::size_t i = 0; i < reads.size(); ++i) {
    if (done[i]) continue;
    std::vector<ColumnRead> pass;
    for (std::size_t j = i; j < reads.size(); ++j) {
      if (!same_pass(reads[i].source, reads[j].source)) continue;
      pass.push_back(reads[j]);
      done[j] = true;
    }
    read_pass(database, range, points, pass, first);
  }
}

std::vector<ColumnSource> sources_of(const Database& database, PointSpan range,
                                     const std::vector<PointKind>& groups) {
  std::vector<ColumnSource> sources = {{"points", "", "name", true},
                                       {"points", "", "reason", true},
                                       {"points", "", "exit_code", false}};
  std::set<std::string> kinds;
  for (const PointKind& group : groups) kinds.insert(group.experiment);
  for (const std::string& kind : kinds)
    for (const auto& [column, type] : column_types(database, metrics_table(kind)))
      if (column != "point")
        sources.push_back({metrics_table(kind), "", column, is_word_type(type)});
  for (const std::string& metric : different(database, range, "metric", "intervals"))
    for (const char* quantile : {"p10", "p90"})
      sources.push_back({"intervals", metric, quantile, false});
  for (const std::string& axis : varied_axes(database, range)) {
    sources.push_back({"varied", axis, "value", false});
    sources.push_back({"varied", axis, "text", true});
  }
  return sources;
}

}  // namespace orrery
