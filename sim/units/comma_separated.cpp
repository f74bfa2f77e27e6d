// SPDX-License-Identifier: Apache-2.0
#include "sim/units/comma_separated.h"

#include <algorithm>

namespace orrery {

std::vector<std::string_view> comma_separated(std::string_view text) {
  std::vector<std::string_view> words;
  while (!text.empty()) {
    std::string_view word = take_until(',', text);
    word.remove_prefix(std::min(word.find_first_not_of(' '), word.size()));
    word = word.substr(0, word.find_last_not_of(' ') + 1);
    if (!word.empty()) words.push_back(word);
  }
  return words;
}

std::string_view take_until(char end, std::string_view& rest) {
  const std::string_view taken = rest.substr(0, rest.find(end));
  rest.remove_prefix(std::min(taken.size() + 1, rest.size()));
  return taken;
}

}  // namespace orrery
