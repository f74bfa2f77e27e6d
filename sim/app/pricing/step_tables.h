// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <functional>
#include <utility>
#include <vector>

#include "sim/app/pricing/step_price.h"

namespace orrery {

/// How finely a RowTable looks.
struct RowSteps {
  std::int64_t exact = 64;  ///< up to so many rows each number has its own price
  std::int64_t width = 16;  ///< rows of a cell beyond
  /// Even and odd numbers apart: libraries have other kernels for products of rows that are not
  /// aligned.
  bool parity = true;
};

/// Prices by a number of rows (tokens, or sequences), filled on demand. Kernels take what their
/// tiles take, and these are no less than 16 rows high: time jumps between cells and is straight
/// inside most. Where the middle of a cell is more than kTolerance off the line between its ends (a
/// transfer that is carried in another way from some size on), it is priced row by row.
class RowTable {
 public:
  using Evaluate = std::function<StepPrice(std::int64_t rows)>;
  static constexpr double kTolerance = 2e-3;

  explicit RowTable(Evaluate evaluate, RowSteps steps = {})
      : evaluate_(std::move(evaluate)), steps_(steps) {}

  /// Appends the price of so many rows. @return whether all of it was there
  bool add(std::int64_t rows, double weight, PriceTerms& terms);
  std::size_t entries() const { return entries_.size(); }

 private:
  enum class Cell : std::uint8_t { kUnknown, kStraight, kRough };

  const StepPrice& at(std::int64_t rows);
  bool straight(std::int64_t low, std::int64_t high);

  Evaluate evaluate_;
  RowSteps steps_;
  std::vector<Cell> cells_;  ///< what is known between rows, by the lowest row of a cell
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
/// the two, lines between nodes.
class ColumnTable {
 public:
  using Point = std::array<double, 2>;
  using Evaluate = std::function<StepPrice(std::int64_t rows, const Point& point)>;

  ColumnTable(std::array<TableAxis, 2> axes, RowSteps steps, Evaluate evaluate);

  /// Appends the price at a point. @return whether all of it was there
  bool add(std::int64_t rows, const Point& point, double weight, PriceTerms& terms);
  std::size_t entries() const;

 private:
  RowTable& column(std::size_t first, std::size_t second);

  std::array<TableAxis, 2> axes_;
  RowSteps steps_;
  Evaluate evaluate_;
  std::deque<RowTable> columns_;
  std::vector<std::int32_t> known_;  ///< index in columns_ by node; -1: no column yet
};

}  // namespace orrery
