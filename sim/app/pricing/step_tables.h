// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <utility>
#include <vector>

#include "sim/app/pricing/step_price.h"

namespace orrery {

/// How finely a RowTable looks.
struct RowSteps {
  std::int64_t exact = 64;    ///< up to so many rows each number has its own price
  std::int64_t width = 16;    ///< rows of the narrowest cells beyond; a power of two
  std::int64_t widest = 256;  ///< rows of the widest, where these are an eighth of all before them
  /// Even and odd numbers apart: libraries have other kernels for products of rows that are not
  /// aligned.
  bool parity = true;
  double tolerance = 2e-3;  ///< share of a price that a line in a cell may be off
};

/// Prices by a number of rows (tokens, or sequences), filled on demand. Kernels take what their
/// tiles take: time jumps where these have one more, mostly at multiples of powers of two, and is
/// straight between. A cell of such multiples is taken to be straight where the prices around its
/// middle and in its quarters are within the tolerance of the line between its ends. Else it is
/// halved, and the narrowest are priced row by row (a transfer that is carried in another way from
/// some size on). What a cell is taken for does not depend on what was asked before.
class RowTable {
 public:
  using Evaluate = std::function<StepPrice(std::int64_t rows)>;
  explicit RowTable(Evaluate evaluate, RowSteps steps = {})
      : evaluate_(std::move(evaluate)), steps_(steps) {}

  /// Appends the price of so many rows. @return whether all of it was there
  bool add(std::int64_t rows, double weight, PriceTerms& terms);

 private:
  enum class Shape : std::uint8_t { kUnknown, kStraight, kRough };
  /// The rows of a cell: all, or with parity those that are even or odd.
  struct Cell {
    std::int64_t low = 1, high = 1, width = 1;
  };

  const StepPrice& at(std::int64_t rows);
  Cell cell(std::int64_t rows, std::int64_t width) const;
  std::int64_t root_width(std::int64_t rows) const;
  Shape& shape(const Cell& cell);
  bool straight(const Cell& cell);
  bool on_line(const Cell& cell, std::int64_t rows);
  std::optional<Cell> straight_cell(std::int64_t rows);

  Evaluate evaluate_;
  RowSteps steps_;
  /// What is known between rows, by the logarithm of the width and the lowest row of a cell.
  std::vector<std::vector<Shape>> shapes_;
  std::deque<StepPrice> entries_;
  std::vector<std::int32_t> known_;  ///< index in entries_ by rows; -1: not priced
};

/// The nodes of one dimension of a table, ascending, and where a value stands between them.
class TableAxis {
 public:
  explicit TableAxis(std::vector<double> nodes) : nodes_(std::move(nodes)) {}

  struct Place {
    std::size_t node = 0;
    double weight = 0;  ///< weight of the next node, 0 to 1
  };
  Place place(double value) const;
  double node(std::size_t index) const { return nodes_[index]; }
  std::size_t size() const { return nodes_.size(); }

 private:
  std::vector<double> nodes_;
};

/// Prices by a number of rows and two more figures, filled on demand: a RowTable at each node of
/// the two, lines between nodes. What is filled brings its neighbours, for points that move.
class ColumnTable {
 public:
  using Point = std::array<double, 2>;
  using Evaluate = std::function<StepPrice(std::int64_t rows, const Point& point)>;

  ColumnTable(std::array<TableAxis, 2> axes, RowSteps steps, Evaluate evaluate);

  /// Appends the price at a point. @return whether all of it was there
  bool add(std::int64_t rows, const Point& point, double weight, PriceTerms& terms);

 private:
  bool look(std::int64_t rows, const Point& point, double weight, PriceTerms& terms);
  void look_around(std::int64_t rows, const Point& point);
  RowTable& column(std::size_t first, std::size_t second);

  std::array<TableAxis, 2> axes_;
  RowSteps steps_;
  Evaluate evaluate_;
  std::deque<RowTable> columns_;
  std::vector<std::int32_t> known_;  ///< index in columns_ by node; -1: no column yet
};

}  // namespace orrery
