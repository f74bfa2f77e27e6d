// SPDX-License-Identifier: Apache-2.0
#include "sim/app/sweeps/plan/amount.h"

#include <array>
#include <charconv>
#include <cmath>

#include "sim/units/text.h"
#include "sim/units/unit_table.h"

namespace orrery {

Amount parse_amount(const std::string& text) {
  const std::size_t digit = text.find_last_of("0123456789");
  const std::size_t unit = text.find_first_not_of(' ', digit == std::string::npos ? 0 : digit + 1);
  if (digit == std::string::npos || unit == std::string::npos || text[digit + 1] == '.')
    return {parse_number(text), {}};
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

Amount rounded(Amount amount, int digits, bool integer) {
  if (integer) return {std::nearbyint(amount.value), amount.dimension};
  std::array<char, 40> text{};
  const auto end = std::to_chars(text.data(), text.data() + text.size(), amount.value,
                                 std::chars_format::general, digits);
  std::from_chars(text.data(), end.ptr, amount.value);
  return amount;
}

}  // namespace orrery
