// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <nlohmann/json_fwd.hpp>
#include <stdexcept>
#include <string>

namespace orrery::config {

/// A text that is no JSON, or has a number that no double holds.
struct JsonFault : std::runtime_error {
  JsonFault(const std::string& message, std::size_t at) : std::runtime_error(message), byte(at) {}
  std::size_t byte;  ///< place in the text; the first byte is 1
};

/// @throws JsonFault
nlohmann::json parse_json(const std::string& text);

}  // namespace orrery::config
