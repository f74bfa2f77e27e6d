// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "sim/config/node.h"

namespace orrery::config {

/// Begins the source of a value that was scaled.
inline constexpr std::string_view kDerived = "derived: ";

/// Declares that the value of one key of a map is in proportion to the number of another:
/// `const RegisterProportional power("accelerators", "all_in_power");`. Where `extends` or `--set`
/// changes the number and leaves the value, the value is scaled: half of the accelerators draw half
/// of the power. Both keys may be Facts.
struct RegisterProportional {
  RegisterProportional(const std::string& number, const std::string& value);
};

/// Whether other values of a map are in proportion to the number of a key.
bool has_proportional(std::string_view number);

/// Scales the values of `map` that are in proportion to `number`, which was `before`. Values that
/// were set (`--set`), or written in the file that sets the number, stay as they are. The source of
/// a scaled value begins with kDerived.
void scale_proportional(Node& map, std::string_view number, const Node& before);

}  // namespace orrery::config
