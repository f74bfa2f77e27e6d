// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <functional>
#include <vector>

#include "sim/app/pricing/step_price.h"

namespace orrery {

/// Prices by a number of rows (tokens, or sequences that sample), filled on demand. Up to kExact
/// rows each has its own. Beyond, products take what their tiles take, so that time is nearly
/// straight inside a cell of 64 rows, even and odd numbers apart (libraries run other kernels for
/// rows that are not aligned): where the middle of a cell is within kTolerance of the line between
/// its ends, the line is taken, else the same is tried on cells of 16 rows, and what is not straight
/// there is priced row by row.
class RowTable {
 public:
  using Evaluate = std::function<StepPrice(std::int64_t rows)>;
  static constexpr std::int64_t kExact = 64;
  static constexpr double kTolerance = 1e-3;

  explicit RowTable(Evaluate evaluate) : evaluate_(std::move(evaluate)) {}

  /// Appends the price of so many rows. @return whether all of it was there
  bool add(std::int64_t rows, double weight, PriceTerms& terms);
  std::size_t entries() const { return entries_.size(); }

 private:
  enum class Cell : std::uint8_t { kUnknown, kStraight, kRough };
  static constexpr std::array<std::int64_t, 2> kWidths = {64, 16};

  struct Ends {
    std::int64_t low = 0, high = 0;
  };
  static Ends ends_of(std::int64_t rows, std::int64_t width);
  const StepPrice& at(std::int64_t rows);
  Cell& cell(std::size_t level, std::int64_t rows);
  Cell judged(Ends ends);

  Evaluate evaluate_;
  std::deque<StepPrice> entries_;
  std::vector<std::int32_t> known_;               ///< by rows: an index; -1: not priced
  std::array<std::vector<Cell>, 2> cells_;        ///< by level, cell and parity
};

/// The nodes of one dimension of a table, ascending, and where a value stands between them.
class GridAxis {
 public:
  explicit GridAxis(std::vector<double> nodes) : nodes_(std::move(nodes)) {}

  struct Place {
    std::size_t node = 0;
    double weight = 0;  ///< of the next node
  };
  Place place(double value) const;
  double node(std::size_t index) const { return nodes_[index]; }
  std::size_t size() const { return nodes_.size(); }

 private:
  std::vector<double> nodes_;
};

/// Prices on a grid of up to three dimensions, filled on demand; between nodes by lines in each
/// dimension.
class GridTable {
 public:
  using Point = std::array<double, 3>;
  using Evaluate = std::function<StepPrice(const Point& point)>;

  GridTable(std::array<GridAxis, 3> axes, Evaluate evaluate);

  /// Appends the price at a point. @return whether all of it was there
  bool add(const Point& point, double weight, PriceTerms& terms);
  std::size_t entries() const { return entries_.size(); }

 private:
  const StepPrice& at(const std::array<std::size_t, 3>& node);

  std::array<GridAxis, 3> axes_;
  Evaluate evaluate_;
  std::deque<StepPrice> entries_;
  std::vector<std::int32_t> known_;
};

}  // namespace orrery
