// SPDX-License-Identifier: Apache-2.0
#include "sim/store/migration.h"

#include <string>

#include "sim/results/record_bytes.h"
#include "sim/store/old_records.h"
#include "sim/store/record_writer.h"
#include "sim/store/schema.h"
#include "sim/store/seal.h"

namespace orrery {
namespace {

constexpr const char* kOld = "old_";
/// Those that refer to others first, so that they can be dropped one after the other.
constexpr const char* kOldTables[] = {"metrics",    "classes", "links",
                                      "parameters", "runs",    "points"};

/// Runs of versions 4 and 5, of which the last one of a failure has its exit code.
constexpr const char* kRunsToAttempts = R"sql(
INSERT INTO attempts (point, n, started, host, wall_s, exit_code, signal, stderr)
  SELECT point, row_number() OVER (PARTITION BY point ORDER BY started, host) - 1, started, host,
    wall_s, exit_code, 0, '' FROM runs JOIN points USING (point);
DROP TABLE runs;
)sql";

void set_version(Database& database) {
  database.execute(("PRAGMA user_version = " + std::to_string(kStoreVersion)).c_str());
}

bool has_table(const Database& database, const std::string& name) {
  return database.integer("SELECT count(*) FROM sqlite_schema WHERE name = '" + name + "'") > 0;
}

void copy_points(Database& database) {
  OldRecordReader reader(database, kOld);
  RecordWriter writer(database);
  for (auto next = reader.next_identity(""); next; next = reader.next_identity(*next)) {
    const std::optional<RunRecord> record = reader.find(*next);
    if (!record) continue;
    const std::int64_t point =
        writer.insert(*record, result_digest(*record), {reader.engine_version(*next), true, 0});
    for (const RunTimes& times : reader.times(*next)) writer.insert_attempt(point, times);
  }
}

}  // namespace

void create_tables(Database& database) {
  database.execute(kStoreSchema);
  database.execute(kRowSchema);
  database.execute(kTileSchema);
  database.execute(kAttemptSchema);
  database.execute(kSearchSchema);
  database.execute(kStatusIndex);
  database.execute(kRowGroupSchema);
  set_version(database);
  database.execute(("PRAGMA application_id = " + std::to_string(kStoreApplicationId)).c_str());
}

void update_tables(Database& database) {
  const std::int64_t version = database.integer("PRAGMA user_version");
  if (version >= kStoreVersion) return;
  if (version >= kReadableStoreVersion) {
    if (version < kFirstStoreVersionWithRows) database.execute(kRowSchema);
    if (version < kFirstStoreVersionWithAttempts) {
      database.execute(kAttemptSchema);
      database.execute(kRunsToAttempts);
      database.execute(kStatusIndex);
      database.execute("ALTER TABLE points ADD COLUMN seal TEXT NOT NULL DEFAULT ''");
      Seal(database).put_all(database);
    }
    if (version < kFirstStoreVersionWithSearches) database.execute(kSearchSchema);
    database.execute(kRowGroupSchema);
    set_version(database);
    return;
  }
  database.execute("DROP VIEW IF EXISTS v_runs");
  for (const char* table : kOldTables) {
    if (!has_table(database, table)) continue;
    database.execute((std::string("ALTER TABLE ") + table + " RENAME TO " + kOld + table).c_str());
  }
  // Only now: a table that refers to another follows it when that is renamed.
  database.execute(kStoreSchema);
  database.execute(kRowSchema);
  database.execute(kAttemptSchema);
  database.execute(kSearchSchema);
  database.execute(kStatusIndex);
  database.execute(kRowGroupSchema);
  if (!has_table(database, "tiles")) database.execute(kTileSchema);
  copy_points(database);
  for (const char* table : kOldTables)
    database.execute((std::string("DROP TABLE IF EXISTS ") + kOld + table).c_str());
  set_version(database);
}

}  // namespace orrery
