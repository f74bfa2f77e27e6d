// SPDX-License-Identifier: Apache-2.0
#include "sim/store/point_columns.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <set>
#include <stdexcept>
#include <string>
#include <utility>

#include "sim/results/record_bytes.h"
#include "sim/store/record_writer.h"
#include "sim/store/views.h"

namespace orrery {
namespace {

constexpr double kNoNumber = std::numeric_limits<double>::quiet_NaN();
/// So many different values are told by a byte each.
constexpr std::size_t kMostCoded = 256;

enum class Layout : std::uint64_t { kPlain = 0, kCoded = 1, kWords = 2 };

/// Different numbers in the order of their first rows, and their places; none: there are too many.
bool coded(const std::vector<double>& numbers, std::vector<double>& different, std::string& codes) {
  std::map<std::uint64_t, unsigned char> places;
  codes.reserve(numbers.size());
  for (const double number : numbers) {
    const auto [known, added] = places.emplace(std::bit_cast<std::uint64_t>(number),
                                               static_cast<unsigned char>(different.size()));
    if (added && different.size() == kMostCoded) return false;
    if (added) different.push_back(number);
    codes += static_cast<char>(known->second);
  }
  return true;
}

std::string bytes_of_numbers(const std::vector<double>& numbers) {
  ByteWriter bytes;
  std::vector<double> different;
  std::string codes;
  if (!coded(numbers, different, codes)) {
    bytes.add(static_cast<std::uint64_t>(Layout::kPlain));
    bytes.add_array(numbers);
    return bytes.bytes();
  }
  bytes.add(static_cast<std::uint64_t>(Layout::kCoded));
  bytes.add_array(different);
  bytes.add(different.size() > 1 ? codes : std::string());
  return bytes.bytes();
}

std::string bytes_of_words(const PointColumn& column) {
  ByteWriter bytes;
  bytes.add(static_cast<std::uint64_t>(Layout::kWords));
  bytes.add(std::uint64_t{column.words.size()});
  for (const std::string& word : column.words) bytes.add(word);
  bytes.add_array(column.codes);
  return bytes.bytes();
}

void read_words(ByteReader& bytes, std::size_t first, std::size_t rows, ColumnBuilder& into) {
  std::vector<std::uint32_t> places(bytes.number());  // of words here; the first is none
  for (std::size_t i = 0; i < places.size(); ++i) {
    std::string word = bytes.text();
    if (i > 0) places[i] = into.code(std::move(word));
  }
  const auto codes = bytes.array<std::uint32_t>();
  for (std::size_t row = 0; row < rows; ++row)
    if (codes.at(row) > 0) into.column().codes[first + row] = places.at(codes[row]);
}

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

PointColumn PointColumn::empty(Kind kind, std::string unit, std::size_t rows) {
  PointColumn column;
  column.kind = kind;
  column.unit = std::move(unit);
  if (kind == Kind::kWord) {
    column.codes.assign(rows, 0);
  } else {
    column.numbers.assign(rows, kNoNumber);
  }
  return column;
}

bool PointColumn::has(std::size_t row) const {
  return kind == Kind::kWord ? codes[row] != 0 : !std::isnan(numbers[row]);
}

std::uint32_t ColumnBuilder::code(std::string word) {
  if (last_ != 0 && column_.words[last_] == word) return last_;
  const auto [known, added] =
      codes_.emplace(std::move(word), static_cast<std::uint32_t>(column_.words.size()));
  if (added) column_.words.push_back(known->first);
  return last_ = known->second;
}

std::string to_bytes(const PointColumn& column) {
  return column.kind == PointColumn::Kind::kWord ? bytes_of_words(column)
                                                 : bytes_of_numbers(column.numbers);
}

void from_bytes(std::string_view bytes, std::size_t first, std::size_t rows, ColumnBuilder& into) {
  ByteReader reader(bytes);
  const auto layout = static_cast<Layout>(reader.number());
  if ((layout == Layout::kWords) != into.is_words())
    throw std::out_of_range("numbers are no words");
  if (layout == Layout::kWords) return read_words(reader, first, rows, into);
  const auto numbers = reader.array<double>();
  const std::string codes = layout == Layout::kCoded ? reader.text() : std::string();
  for (std::size_t row = 0; row < rows; ++row) {
    std::size_t place = row;
    if (layout == Layout::kCoded)
      place = codes.empty() ? 0 : static_cast<unsigned char>(codes.at(row));
    if (!std::isnan(numbers.at(place))) into.set(first + row, numbers[place]);
  }
}

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
