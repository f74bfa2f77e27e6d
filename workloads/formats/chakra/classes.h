// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string_view>

#include "sim/graph/kernel.h"

namespace orrery {

/// The class that the name of an operator or kernel in a Chakra trace tells, if it tells one.
std::optional<KernelClass> class_of_name(std::string_view name);
/// The class of that name (to_string); nothing for another word.
std::optional<KernelClass> class_of_word(std::string_view word);

}  // namespace orrery
