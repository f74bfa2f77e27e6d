// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "sim/results/version.h"

namespace orrery {

/// SHA-256 (FIPS 180-4) of the bytes, as 64 lower-case hex digits.
std::string sha256_hex(std::string_view bytes);

/// SHA-256 of a file's content.
/// @throws std::system_error when it cannot be read.
std::string sha256_hex_of_file(const std::string& path);

/// One text per value: keys sorted, no spaces, and whole numbers without a fraction, so that `8`,
/// `8.0` and `8e0` are one number and the order of keys does not matter.
/// @throws std::logic_error on a number that is not finite.
std::string canonical_json(const nlohmann::ordered_json& value);

/// A file that a result depends on: what it is used as ("calibration"), never where it lies.
struct FileHash {
  std::string role;
  std::string sha256;
};

/// The name of a point: equal for equal inputs, whatever machine, path or order they came by.
/// @param configuration resolved: every default filled in, no paths
/// @param files in any order
std::string point_identity(const nlohmann::ordered_json& configuration, std::vector<FileHash> files,
                           std::string_view engine_version = kEngineVersion);

}  // namespace orrery
