// SPDX-License-Identifier: Apache-2.0
#include "sim/config/json_text.h"

#include <algorithm>
#include <nlohmann/json.hpp>

namespace orrery::config {

nlohmann::json parse_json(const std::string& text) {
  try {
    return nlohmann::json::parse(text);
  } catch (const nlohmann::json::parse_error& error) {
    throw JsonFault("not valid JSON", std::max<std::size_t>(1, error.byte));
  } catch (const nlohmann::json::out_of_range& error) {
    // The library quotes the number at the end of its message, and says no place.
    const std::string message = error.what();
    const std::size_t begin = message.find('\'') + 1;
    const std::string number = message.substr(begin, message.rfind('\'') - begin);
    throw JsonFault("the number " + number + " is too large", text.find(number) + 1);
  }
}

}  // namespace orrery::config
