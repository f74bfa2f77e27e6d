// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "sim/config/library.h"
#include "sim/results/answer.h"

namespace orrery {

/// All accelerators of a library as one table: year, dense rates by format, memory, power, links,
/// as published. JSON has the same in SI base units, with a line of help, and which are estimates.
/// @param sort a column, of whose values the largest stand first, or `name`; empty: by name
/// @throws UsageError for a column that there is not
Answer accelerator_table(const config::Library& library, const std::string& sort = {});

/// The columns to sort by.
std::vector<std::string> accelerator_columns();

}  // namespace orrery
