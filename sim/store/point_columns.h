// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "sim/store/sqlite.h"

namespace orrery {

/// What points have in common.
struct PointKind {
  std::string status;          ///< "ok", "infeasible", "failed"
  std::string experiment;      ///< kind of experiment
  std::string engine_version;  ///< engine that made the result
  std::int64_t base = 0;       ///< row of `configurations`; 0: none

  bool operator==(const PointKind&) const = default;
};

/// One value of each of some points.
struct PointColumn {
  enum class Kind { kNumber, kFlag, kWord };
  Kind kind = Kind::kNumber;
  std::string unit;                  ///< unit of numbers: "s"; empty for counts
  std::vector<double> numbers;       ///< numbers by row, flags as 1 and 0; not a number: nothing
  std::vector<std::uint32_t> codes;  ///< places of words by row in `words`; 0: nothing
  std::vector<std::string> words = {""};

  /// One without values.
  static PointColumn empty(Kind kind, std::string unit, std::size_t rows);

  bool has(std::size_t row) const;
  const std::string& word(std::size_t row) const { return words[codes[row]]; }
};

/// A column that is being filled: a word stands in it once.
class ColumnBuilder {
 public:
  explicit ColumnBuilder(PointColumn column) : column_(std::move(column)) {}

  bool is_words() const { return column_.kind == PointColumn::Kind::kWord; }
  void set(std::size_t row, double number) { column_.numbers[row] = number; }
  void set(std::size_t row, std::string word) { column_.codes[row] = code(std::move(word)); }
  /// The word's place in the column, which gets it where it is new. Neighbours often have the same.
  std::uint32_t code(std::string word);

  PointColumn& column() { return column_; }

 private:
  PointColumn column_;
  std::map<std::string, std::uint32_t> codes_;
  std::uint32_t last_ = 0;
};

/// Numbers or words as bytes: each value once where there are few of them, then their places.
std::string to_bytes(const PointColumn& column);
/// Puts those values into rows `first` and following of a column of the same kind; where there is
/// none, the row stays as it is.
/// @throws std::out_of_range where the bytes are those of no column
void from_bytes(std::string_view bytes, std::size_t first, std::size_t rows, ColumnBuilder& into);

/// Where the values of a column stand: in one of a table, of its rows with a key.
struct ColumnSource {
  std::string table;   ///< points, metrics_<kind>, intervals, varied
  std::string key;     ///< metric of `intervals`, axis of `varied`; else empty
  std::string column;  ///< step_time_s, p90, value
  bool words = false;  ///< texts, not numbers

  /// The path of the three: varied/parallel.tp/value.
  std::string name() const { return table + "/" + key + "/" + column; }
};

/// Points of a store with numbers from `first` to `last` - 1, as rows of its tables have them.
struct PointSpan {
  std::int64_t first = 0, last = 0;
};

/// Points in their order, each of one of some groups.
struct PointList {
  std::vector<std::int64_t> points;
  std::vector<PointKind> groups;
  std::vector<std::uint32_t> group_of;  ///< place in `groups`, by point
};

/// @throws StoreError (kCorrupt) where they are not in their order
PointList read_points(const Database& database, PointSpan range);

/// A source and the column that gets its values.
struct ColumnRead {
  ColumnSource source;
  ColumnBuilder* into = nullptr;
};

/// Reads values of points into rows `first` and following of columns. Sources of one table and key
/// are read in one pass.
void read_rows(const Database& database, PointSpan range, const std::vector<std::int64_t>& points,
               const std::vector<ColumnRead>& reads, std::size_t first);

/// What points of a range have otherwise than their bases.
std::vector<std::string> varied_axes(const Database& database, PointSpan range);

/// Every source that points of a range may have values in.
std::vector<ColumnSource> sources_of(const Database& database, PointSpan range,
                                     const std::vector<PointKind>& groups);

/// The text of a metric's or label's column: whether it holds words.
bool is_word_type(const std::string& type);

}  // namespace orrery
