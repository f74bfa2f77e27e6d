// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

namespace orrery {

/// A value as Python prints it: "[[1, 2], 'a', None]" is a list of a list and two texts.
struct PythonValue {
  std::string_view text;  ///< text without quotes; all of a list
  bool is_list = false;
  std::vector<PythonValue> items;
};

/// The value that a text is, lists and tuples up to 16 deep and of 65,536 values in all; nothing
/// for what is none, or more. Points into the text.
std::optional<PythonValue> python_value(std::string_view text);

/// The whole number that a text is; -1: none, or below 0.
std::int64_t natural_number(std::string_view text);

}  // namespace orrery
