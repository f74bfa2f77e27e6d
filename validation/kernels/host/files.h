// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace orrery::measure {

/// Writes the file whole or not at all: under another name first, then renamed.
/// @throws std::runtime_error when it cannot be written.
void write_file(const std::filesystem::path& path, const std::string& text);

/// Packs files of one folder into <folder>/measurements.tar.gz with the system's tar.
/// @throws std::runtime_error when tar fails.
void archive(const std::filesystem::path& folder, const std::vector<std::string>& names);

}  // namespace orrery::measure
