// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sim/config/csv.h"

namespace orrery {

/// The columns of those names, in their order; the missing ones are errors of the header.
/// @throws config::ConfigError when there are missing ones
std::vector<std::size_t> require_columns(config::CsvReader& reader,
                                         const std::vector<std::string>& names);

/// Read a cell of the current record. What is wrong becomes an error of the reader, and the value
/// 0. A count is a whole number from 0 on; a latency is finite and above 0; a share lies between 0
/// and 1; a name is not empty.
std::int64_t read_count(config::CsvReader& reader, std::size_t cell);
double read_latency(config::CsvReader& reader, std::size_t cell);
double read_share(config::CsvReader& reader, std::size_t cell);
std::string read_name(config::CsvReader& reader, std::size_t cell);

}  // namespace orrery
