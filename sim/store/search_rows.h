// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sim/store/sqlite.h"

namespace orrery {

/// The beginning of a search, as the table `searches` keeps it: with it, and with results, a search
/// goes the same way again whatever else the store has got since.
struct SearchRow {
  std::string key;    ///< SHA-256 of what is searched and how
  std::string sweep;  ///< name of the sweep, for people
  std::int64_t seed = 0;
  std::vector<std::uint64_t> begun_from;  ///< places of the plan that the store had results of
};

/// Adds a row inside the caller's transaction; one that is there stays as it is.
void insert_search(Database& database, const SearchRow& row);

/// Every row, in order of keys.
/// @throws StoreError when a row is not what was written
std::vector<SearchRow> read_searches(const Database& database);

}  // namespace orrery
