// SPDX-License-Identifier: Apache-2.0
#include "sim/store/garbage.h"

#include <fmt/core.h>

#include <limits>
#include <memory>

#include "sim/results/version.h"
#include "sim/store/row_groups.h"
#include "sim/store/store_file.h"

namespace orrery {
namespace {

const std::string kEngine = "'" + std::string(kEngineVersion) + "'";
const std::string kOlderPoints = "status <> 'failed' AND engine_version <> " + kEngine;

/// Points that go.
std::string dropped_points(const GarbageKinds& kinds) {
  std::string condition = "0";
  if (kinds.failures) condition += " OR status = 'failed'";
  if (kinds.older_engines) condition += " OR (" + kOlderPoints + ")";
  return condition;
}

std::int64_t count(const Database& database, const char* table, const std::string& condition) {
  return database.integer(fmt::format("SELECT count(*) FROM {} WHERE {}", table, condition));
}

}  // namespace

Garbage find_garbage(const Database& database, const GarbageKinds& kinds) {
  Garbage garbage;
  if (kinds.failures) garbage.failures = count(database, "points", "status = 'failed'");
  if (kinds.older_engines) {
    garbage.older_results = count(database, "points", kOlderPoints);
    garbage.older_tiles = count(database, "tiles", "engine_version <> " + kEngine);
  }
  garbage.unused_configurations =
      count(database, "configurations",
            "base NOT IN (SELECT base FROM points WHERE base IS NOT NULL AND NOT (" +
                dropped_points(kinds) + "))");
  return garbage;
}

std::int64_t drop_garbage(const std::filesystem::path& path, const GarbageKinds& kinds) {
  const auto before = static_cast<std::int64_t>(std::filesystem::file_size(path));
  {
    const std::unique_ptr<Database> database = open_store_to_write(path, 0);
    Transaction transaction(*database);
    database->execute(("DELETE FROM points WHERE " + dropped_points(kinds)).c_str());
    if (kinds.older_engines)
      database->execute(("DELETE FROM tiles WHERE engine_version <> " + kEngine).c_str());
    database->execute(
        "DELETE FROM configurations WHERE base NOT IN (SELECT base FROM points WHERE base IS NOT "
        "NULL)");
    database->execute("DELETE FROM layouts WHERE layout NOT IN (SELECT layout FROM points)");
    drop_damaged_row_groups(*database);
    add_row_groups(*database, 0, std::numeric_limits<std::int64_t>::max());
    transaction.commit();
    database->execute("VACUUM");
    settle_store(*database);
  }
  return before - static_cast<std::int64_t>(std::filesystem::file_size(path));
}

}  // namespace orrery
