// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace orrery {

/// What a metric does where one input changes and all others are equal.
struct MainEffect {
  /// The mean over groups of what a value does: the metric with it less the mean of its group.
  struct Level {
    std::uint32_t code = 0;
    double effect = 0;
    std::size_t groups = 0;
  };
  std::vector<Level> levels;  ///< levels by code
  std::size_t groups = 0;     ///< groups of points that differ in this input alone
  double swing = 0;           ///< largest less smallest effect of a level
  double least = 0;           ///< smallest change of the metric within a group
  double most = 0;            ///< largest change of the metric within a group
};

/// The effect of each input over points: groups are matched, i.e. all other inputs are equal.
/// Points that are alike in all inputs count as their mean. Takes O(k n log n) for k inputs of n
/// points.
/// @param inputs codes of values by input, then by point
/// @param metric by point
std::vector<MainEffect> main_effects(const std::vector<std::vector<std::uint32_t>>& inputs,
                                     const std::vector<double>& metric);

}  // namespace orrery
