// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <charconv>
#include <optional>
#include <string>
#include <utility>

namespace orrery {

/// "0.11", "0.11.2": major and minor number. Nothing for other texts.
inline std::optional<std::pair<int, int>> engine_version(const std::string& text) {
  int major = 0, minor = 0;
  const char* end = text.data() + text.size();
  const auto first = std::from_chars(text.data(), end, major);
  if (first.ec != std::errc() || first.ptr == end || *first.ptr != '.') return std::nullopt;
  const auto second = std::from_chars(first.ptr + 1, end, minor);
  if (second.ec != std::errc() || (second.ptr != end && *second.ptr != '.')) return std::nullopt;
  return std::pair(major, minor);
}

}  // namespace orrery
