// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

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

}  // namespace orrery
