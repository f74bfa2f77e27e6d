// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace orrery {

/// The words between the commas of a text, without the spaces around them: views of `text`. Empty
/// ones are left out.
std::vector<std::string_view> comma_separated(std::string_view text);

/// The text before the first `end`, or all of it; `rest` loses that and the `end`.
std::string_view take_until(char end, std::string_view& rest);

/// The texts of a range, "a, b, c": of each element, what `text_of` makes of it.
template <class Range, class Text = std::identity>
std::string comma_joined(const Range& range, Text text_of = {}) {
  std::string all;
  for (bool first = true; const auto& element : range) {
    if (!first) all += ", ";
    all += std::invoke(text_of, element);
    first = false;
  }
  return all;
}

}  // namespace orrery
