// SPDX-License-Identifier: Apache-2.0
#include "sim/app/sweeps/plan/amount.h"

#include <array>
#include <charconv>
#include <cmath>

#include "sim/units/text.h"
#include "sim/units/unit_table.h"

namespace orrery {

Amount parse_amount(const std::string& text) {
  const std::size_t number = number_length(text);
  const std::size_t unit = text.find_first_not_of(' ', number);
  if (number == 0 || unit == std::string::npos) return {parse_number(text), {}};
  const std::string name = text.substr(unit);
  if (name == "k" || name == "M" || name == "G" || name == "T") return {parse_number(text), {}};
  const auto known = find_unit(name);
  if (!known) throw UnitError("'" + text + "' has the unknown unit '" + name + "'");
  return {parse_quantity(text, known->dimension), known->dimension};
}

std::string print_amount(const Amount& amount) {
  return amount.dimension == Dimension{} ? print_number(amount.value)
                                         : print_quantity(amount.value, amount.dimension);
}

namespace {

double rounded(double value, int digits) {
  std::array<char, 40> text{};
  const auto end = std::to_chars(text.data(), text.data() + text.size(), value,
                                 std::chars_format::general, digits);
  std::from_chars(text.data(), end.ptr, value);
  return value;
}

}  // namespace

/// In the unit that people read it in where that is no power of ten: 100 gCO2/kWh.
Amount rounded(Amount amount, int digits, bool integer) {
  if (integer) return {std::nearbyint(amount.value), amount.dimension};
  const DimensionText* text = find_dimension(amount.dimension);
  const char* name = text == nullptr ? "" : text->print_units.front();
  const auto unit = find_unit(name);
  if (!unit || unit->is_decimal()) return {rounded(amount.value, digits), amount.dimension};
  const double shown = rounded(amount.value / unit->in_base_units(), digits);
  return {parse_quantity(print_number(shown) + " " + name, amount.dimension), amount.dimension};
}

}  // namespace orrery
