// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <limits>
#include <optional>
#include <string>

#include "sim/units/quantity.h"

namespace orrery::config {

/// The values that a number may take, in SI base units. Of a list, map, optional or Fact it bounds
/// each number.
struct Bounds {
  double low = -std::numeric_limits<double>::infinity();
  double high = std::numeric_limits<double>::infinity();
  bool above_low = false;  ///< `low` itself is not allowed
  std::optional<Dimension> dimension =
      std::nullopt;  ///< dimension of the limits; none: plain numbers or zero

  bool contains(double value) const {
    return (above_low ? value > low : value >= low) && value <= high;
  }
  /// "between 1 GB/s and 1 PB/s", "at least 1", "above 0"; `dimension` is that of the field.
  std::string text(std::optional<Dimension> field_dimension) const;
  bool unlimited() const;
};

inline Bounds positive() { return {.low = 0, .above_low = true}; }
inline Bounds at_least(double low) { return {.low = low}; }
inline Bounds between(double low, double high) { return {.low = low, .high = high}; }

template <Dimension D>
Bounds at_least(Quantity<D> low) {
  return {.low = low.base(), .dimension = D};
}
template <Dimension D>
Bounds between(Quantity<D> low, Quantity<D> high) {
  return {.low = low.base(), .high = high.base(), .dimension = D};
}

}  // namespace orrery::config
