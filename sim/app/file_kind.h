// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

namespace orrery {

/// What a YAML file describes, told by its top-level keys.
enum class FileKind : std::uint8_t {
  kExperiment,
  kSweep,
  kPublished,
  kSystem,
  kAccelerator,
  kModel
};

/// Follows `extends:` where the file alone does not tell.
/// @throws config::ConfigError when the file cannot be read or is none of them.
FileKind file_kind(const std::string& path);

}  // namespace orrery
