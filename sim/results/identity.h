// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "sim/results/version.h"
#include "sim/units/sha256.h"

namespace orrery {

/// One text per value: keys sorted, no spaces, and whole numbers without a fraction, so that `8`,
/// `8.0` and `8e0` are one number and the order of keys does not matter.
/// @throws std::logic_error on a number that is not finite.
std::string canonical_json(const nlohmann::ordered_json& value);

/// What a result depends on beside its configuration: what it is used as ("calibration"), never
/// where it lies, and the hash of its bytes or of its meaning.
struct FileHash {
  std::string role;
  std::string sha256;
};

/// What the name of a point is the SHA-256 of.
std::string identity_text(const nlohmann::ordered_json& configuration, std::vector<FileHash> files,
                          std::string_view engine_version = kEngineVersion);

/// The name of a point: equal for equal inputs, whatever machine, path or order they came by.
/// @param configuration resolved: every default filled in, no paths
/// @param files in any order
std::string point_identity(const nlohmann::ordered_json& configuration, std::vector<FileHash> files,
                           std::string_view engine_version = kEngineVersion);

}  // namespace orrery
