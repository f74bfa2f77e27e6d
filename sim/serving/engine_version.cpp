// SPDX-License-Identifier: Apache-2.0
#include "sim/serving/engine_version.h"

#include <fmt/core.h>

#include <charconv>

#include "sim/config/library.h"

namespace orrery {

std::string EngineVersion::text() const {
  return patch == 0 ? fmt::format("{}.{}", major, minor)
                    : fmt::format("{}.{}.{}", major, minor, patch);
}

std::optional<EngineVersion> EngineVersion::of(const std::string& text) {
  EngineVersion version;
  const char* end = text.data() + text.size();
  const auto first = std::from_chars(text.data(), end, version.major);
  if (first.ec != std::errc() || first.ptr == end || *first.ptr != '.') return std::nullopt;
  const auto second = std::from_chars(first.ptr + 1, end, version.minor);
  if (second.ec != std::errc() || (second.ptr != end && *second.ptr != '.')) return std::nullopt;
  if (second.ptr == end) return version;
  // What follows the digits of a patch says no more here: 0.5.6.post2, 1.2.0rc5.
  if (std::from_chars(second.ptr + 1, end, version.patch).ec != std::errc()) return std::nullopt;
  return version;
}

bool is_engine_version(const std::string& text) {
  return config::Library::is_path(text) || EngineVersion::of(text.substr(0, text.find('-')));
}

}  // namespace orrery
