// SPDX-License-Identifier: Apache-2.0
#include "sim/config/bounds.h"

#include <cmath>

#include "sim/units/text.h"

namespace orrery::config {

bool Bounds::unlimited() const { return std::isinf(low) && std::isinf(high); }

std::string Bounds::text(std::optional<Dimension> field_dimension) const {
  const auto print = [&](double value) {
    return field_dimension ? print_quantity(value, *field_dimension) : print_number(value);
  };
  if (unlimited()) return {};
  if (std::isinf(high)) return (above_low ? "above " : "at least ") + print(low);
  if (std::isinf(low)) return "at most " + print(high);
  return "between " + print(low) + " and " + print(high);
}

}  // namespace orrery::config
