// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace orrery {

/// The text of a file, plain or gzip (RFC 1952, told by its first bytes), without a byte order
/// mark.
/// @throws config::ConfigError with the file: unreadable, damaged, cut off, or above 512 MiB of
/// text
std::string read_input(const std::string& path);

}  // namespace orrery
