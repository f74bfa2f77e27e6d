// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace orrery {

/// Lists of ranks that communicate with each other.
using RankGroups = std::vector<std::vector<int>>;

/// An axis of a grid: "tp", and how many ranks lie along it.
struct GridAxis {
  std::string name;
  int size = 1;
};

/// A coordinate along the axis of that name.
struct GridCoordinate {
  std::string_view axis;
  int at = 0;
};

/// Ranks numbered along named axes, of which the first varies fastest. An axis is a name and a
/// size: a further one, or another order, is another list.
class RankGrid {
 public:
  /// @throws std::invalid_argument for two axes of one name and for sizes below 1
  explicit RankGrid(std::vector<GridAxis> axes);

  int ranks() const;
  bool has(std::string_view axis) const;
  /// Where `rank` lies along the axis.
  /// @throws std::invalid_argument for an axis that is not there, as do the functions below
  int coordinate(int rank, std::string_view axis) const;
  int size(std::string_view axis) const;

  /// Groups of ranks that differ along the axes `along` and nowhere else, of those that have the
  /// coordinates `fixed`. Ranks ascend in their group, and groups by their first rank.
  RankGroups groups(const std::vector<std::string>& along,
                    const std::vector<GridCoordinate>& fixed = {}) const;
  /// All ranks that have these coordinates, ascending.
  std::vector<int> ranks_at(const std::vector<GridCoordinate>& fixed) const;

 private:
  struct Placed {
    GridAxis axis;
    int stride = 1;  ///< ranks between two neighbours along the axis
  };
  const Placed& at(std::string_view axis) const;
  /// The lowest rank that has these coordinates.
  int first_at(const std::vector<GridCoordinate>& fixed) const;

  std::vector<Placed> axes_;
};

}  // namespace orrery
