// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "sim/store/sqlite.h"

namespace orrery {

/// Columns of a table; none where there is no such table.
std::vector<std::string> columns_of(const Database& database, const std::string& table);

/// Makes the views for people again where they are not those of the tables and metrics of now:
/// `v_runs`, a row for each point with every metric and label, and `v_parameters`, a row for each
/// value of its configuration.
void update_views(Database& database);

}  // namespace orrery
