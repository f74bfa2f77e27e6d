// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/units/quantity.h"

namespace orrery {

/// A unit: one of it is `times / over * 10^exponent` SI base units. The power of ten stands apart
/// so that it can be shifted in decimal text without rounding.
struct Unit {
  Dimension dimension;
  int exponent = 0;
  double times = 1;
  double over = 1;

  bool is_decimal() const { return times == 1 && over == 1; }
  double in_base_units() const;
};

/// What a dimension is called and how its values are printed.
struct DimensionText {
  Dimension dimension;
  const char* name;
  std::vector<const char*> examples;
  const char* base_unit;
  std::vector<const char*> print_units;  ///< units to print with, ascending
};

/// The unit of a name such as "GB", "Tb/s", "pJ/bit"; none if it is unknown.
std::optional<Unit> find_unit(std::string_view name);
/// The entry of a dimension; nullptr if it has no name.
const DimensionText* find_dimension(Dimension dimension);

}  // namespace orrery
