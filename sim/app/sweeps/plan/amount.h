// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "sim/units/quantity.h"

namespace orrery {

/// A number with whatever unit it has.
struct Amount {
  double value = 0;  ///< value in SI base units
  Dimension dimension = {};
};

/// "64", "1 TB/s". @throws UnitError
Amount parse_amount(const std::string& text);
/// The shortest text that is read back as the same number.
std::string print_amount(const Amount& amount);
/// The same amount with so many significant digits, a whole one where `integer`.
Amount rounded(Amount amount, int digits, bool integer);

}  // namespace orrery
