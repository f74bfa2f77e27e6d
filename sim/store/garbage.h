// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include "sim/store/sqlite.h"

namespace orrery {

/// What can be dropped from a store.
struct GarbageKinds {
  bool failures = false;
  bool older_engines = false;  ///< results and times of thread blocks of other engines than this
};

/// How much of it there is.
struct Garbage {
  std::int64_t failures = 0;
  std::int64_t older_results = 0;
  std::int64_t older_tiles = 0;
  std::int64_t unused_configurations = 0;  ///< those that no point would have any more
};

/// Looks without changing anything. @throws StoreError
Garbage find_garbage(const Database& database, const GarbageKinds& kinds);

/// Drops it in one transaction and gives the space back to the file system.
/// @return bytes that the file is smaller by, negative where it grew
/// @throws StoreError
std::int64_t drop_garbage(const std::filesystem::path& path, const GarbageKinds& kinds);

}  // namespace orrery
