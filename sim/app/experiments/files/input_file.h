// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "sim/app/pricing/machine.h"

namespace orrery {

/// What a result rests on beside the configuration.
struct InputFile {
  std::string role;    ///< "calibration", "network_calibration", "measured", "model", ...
  std::string path;    ///< empty: its values count (the device of a calibration), not its bytes
  std::string sha256;  ///< SHA-256 of the bytes, or of the values
};

/// A file that has been read, however long ago: what was made of it then is still in use.
InputFile file_as_read(const std::string& role, const std::string& path);
/// A file that whoever needs it reads again.
/// @throws config::ConfigError where it cannot be read
InputFile file_read_now(const char* role, const std::string& path);

/// Adds the calibration of the kernels of a machine and, by its values, the device that it was
/// fitted on; then operator tables.
void add_kernel_files(const Machine& machine, const std::vector<FilePath>& measured,
                      std::vector<InputFile>& files);
/// Adds the calibration of the collectives of a machine.
void add_collective_files(const Machine& machine, std::vector<InputFile>& files);

/// @throws config::ConfigError where a file was read again meanwhile and is another one
void require_unchanged(const std::vector<InputFile>& files);

/// Keys of an accelerator that only name things.
const std::vector<std::string>& names_of_accelerator();

/// Erases keys of a map, of whatever else nothing.
void erase_keys(nlohmann::ordered_json& map, const std::vector<std::string>& keys);

}  // namespace orrery
