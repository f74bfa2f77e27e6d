// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

namespace orrery {

/// What a file describes: JSON a model, YAML told by its top-level keys.
enum class FileKind : std::uint8_t {
  kExperiment,
  kSweep,
  kPublished,
  kSystem,
  kAccelerator,
  kModel,
  kCalibration,
  kProtocols,
  kNetworkCalibration,
  kAlgorithm,
  kHuggingFace  ///< a config.json
};

/// Follows `extends:` where the file alone does not tell.
/// @throws config::ConfigError when the file cannot be read or is none of them.
FileKind file_kind(const std::string& path);

/// @throws config::ConfigError naming the command for what `path` is, when it is not of the
/// expected kind.
void expect_kind(const std::string& path, FileKind expected);

}  // namespace orrery
