// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "sim/store/sqlite.h"

namespace orrery {

/// Columns of a table; none where there is no such table.
std::vector<std::string> columns_of(const Database& database, const std::string& table);

/// The same with their types, such as "REAL".
std::vector<std::pair<std::string, std::string>> column_types(const Database& database,
                                                              const std::string& table);

/// Makes the views for people again where they are not those of the tables and metrics of now:
/// `v_runs`, a row for each point with every metric and label, and `v_parameters`, a row for each
/// value of its configuration, `v_best`, the best result of each kind by each metric, and
/// `v_failures` with what is known of each.
void update_views(Database& database);

}  // namespace orrery
