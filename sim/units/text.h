// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "sim/units/quantity.h"

namespace orrery {

/// A text that is not the number or quantity that was expected; what() says what was.
class UnitError : public std::runtime_error {
 public:
  explicit UnitError(const std::string& message, std::string suggestion = {})
      : std::runtime_error(message), suggestion_(std::move(suggestion)) {}
  /// A unit that was probably meant, or empty.
  const std::string& suggestion() const { return suggestion_; }

 private:
  std::string suggestion_;
};

/// A finite decimal number as JSON writes it ("-1.5e3"). Octal, hexadecimal, grouped digits,
/// infinities and NaN, which YAML dialects read differently, are errors that say what to write.
/// k, M, G and T behind it are powers of 1,000: "15T".
/// @throws UnitError
double parse_number(std::string_view text);

/// A number with its unit ("3.2 Tb/s") in SI base units (s, B, FLOP, J, USD, gCO2). Only 0 needs
/// no unit. Decimal prefixes are shifted in the text, so that "3.35 TB/s" and "3350 GB/s"
/// give the same double.
/// @throws UnitError
double parse_quantity(std::string_view text, Dimension dimension);

/// The length of the number at the start of a text; 0 without one.
std::size_t number_length(std::string_view text);

/// The shortest text that parse_quantity() reads back as the same double: "3.35 TB/s".
std::string print_quantity(double base, Dimension dimension);

/// The shortest text that parse_number() reads back as the same double.
std::string print_number(double value);
/// For people, rounded: "1,075,200", "13.8". The same in every locale.
std::string print_grouped(double value, int decimals = 0);

template <class Q>
Q parse(std::string_view text) {
  return Q(parse_quantity(text, Q::dimension));
}
template <Dimension D>
std::string print(Quantity<D> quantity) {
  return print_quantity(quantity.base(), D);
}

/// "bandwidth", "duration", ...
std::string dimension_name(Dimension dimension);
/// "900 GB/s", "3.2 Tb/s"
std::vector<std::string> dimension_examples(Dimension dimension);
/// The SI unit in which values are stored: "B/s".
std::string base_unit(Dimension dimension);
/// "bandwidth (e.g. 900 GB/s, 3.2 Tb/s)": what messages say that they expect.
std::string dimension_expectation(Dimension dimension);
/// Every spelling of a unit of this dimension that is worth offering, smallest first.
std::vector<std::string> unit_names(Dimension dimension);

}  // namespace orrery
