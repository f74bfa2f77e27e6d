// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <compare>
#include <optional>
#include <string>

namespace orrery {

/// Version of an engine; a patch number that is left out is 0.
struct EngineVersion {
  int major = 0, minor = 0, patch = 0;
  auto operator<=>(const EngineVersion&) const = default;
  std::string text() const;

  /// Reads "0.11", "0.11.2", "0.5.4.post1", "1.0.0rc3". @return std::nullopt for other texts
  static std::optional<EngineVersion> of(const std::string& text);
};

/// Whether a text may be a version: numbers, numbers with a name of your own ("0.19-mine"), or a
/// path of a file.
bool is_engine_version(const std::string& text);

}  // namespace orrery
