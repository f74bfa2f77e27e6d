// SPDX-License-Identifier: Apache-2.0
#include "sim/units/comma_separated.h"

#include <algorithm>

namespace orrery {

std::vector<std::string_view> comma_separated(std::string_view text) {
  std::vector<std::string_view> words;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find(',', begin), text.size());
    std::string_view word = text.substr(begin, end - begin);
    word.remove_prefix(std::min(word.find_first_not_of(' '), word.size()));
    word = word.substr(0, word.find_last_not_of(' ') + 1);
    if (!word.empty()) words.push_back(word);
    begin = end + 1;
  }
  return words;
}

}  // namespace orrery
