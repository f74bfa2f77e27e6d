// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace orrery {

/// Marks a SQLite file as ours (PRAGMA application_id): "OrRy".
inline constexpr std::int64_t kStoreApplicationId = 0x4f725279;
/// PRAGMA user_version. Raise it with every change below: files of other versions are refused.
inline constexpr std::int64_t kStoreVersion = 8;

/// The tables of a result store. A point is one resolved experiment, a run one execution of it. For
/// each kind of experiment there is a table `metrics_<kind>` with a column for each metric and
/// label that a result of it had (record_writer.cpp adds them). The key's columns come first in
/// tables without row ids: SQLite 3.40 checks the integrity of others wrongly. Views for people:
/// views.h.
inline constexpr const char* kStoreSchema = R"sql(
CREATE TABLE configurations (
  base INTEGER PRIMARY KEY,
  hash TEXT NOT NULL UNIQUE,            -- SHA-256 of the json
  json TEXT NOT NULL CHECK (json_valid(json))  -- {canonical: {...}, parameters: [[path, text, unit, origin, value], ...]}
) STRICT;

CREATE TABLE layouts (                  -- which metrics and labels a result has, in the order of printing
  layout INTEGER PRIMARY KEY,
  json   TEXT NOT NULL UNIQUE           -- {metrics: [[name, unit], ...], labels: [name, ...]}
) STRICT;

CREATE TABLE points (
  point          INTEGER PRIMARY KEY,   -- short key for the tables below; differs between stores
  identity       TEXT NOT NULL UNIQUE,  -- SHA-256 of inputs and engine version: the lasting key
  experiment     TEXT NOT NULL,
  name           TEXT NOT NULL,
  status         TEXT NOT NULL CHECK (status IN ('ok', 'infeasible', 'failed')),
  reason         TEXT NOT NULL,         -- why infeasible or failed
  exit_code      INTEGER NOT NULL,      -- of a failure, as the program would have returned it; else 0
  base           INTEGER REFERENCES configurations,
  layout         INTEGER NOT NULL REFERENCES layouts,
  provenance     TEXT NOT NULL CHECK (json_valid(provenance)),
  engine_version TEXT NOT NULL,
  digest         TEXT NOT NULL,         -- SHA-256 of the results: equal points must agree in it
  seal           TEXT NOT NULL DEFAULT '',  -- SHA-256 of what else is said of it (seal.h)
  old_identity   TEXT                   -- always NULL; seals count it
) STRICT;

CREATE TABLE varied (                   -- what a point has otherwise than its base
  point    INTEGER NOT NULL REFERENCES points ON DELETE CASCADE,
  position INTEGER NOT NULL,
  axis     TEXT NOT NULL,               -- parallel.tp
  value    ANY,                         -- in SI base units, where it is a number; NULL: a flag
  text     TEXT NOT NULL,               -- as written
  origin   TEXT NOT NULL,               -- file:line:column, --set
  PRIMARY KEY (point, position)
) STRICT, WITHOUT ROWID;

CREATE TABLE intervals (                -- of metrics where something was fitted
  point  INTEGER NOT NULL REFERENCES points ON DELETE CASCADE,
  metric TEXT NOT NULL,
  p10    REAL NOT NULL,
  p90    REAL NOT NULL,
  PRIMARY KEY (point, metric)
) STRICT, WITHOUT ROWID;

CREATE TABLE classes (                  -- by class of operators, on the rank that ends last
  point    INTEGER NOT NULL REFERENCES points ON DELETE CASCADE,
  position INTEGER NOT NULL,
  name     TEXT NOT NULL,
  count    INTEGER NOT NULL,
  time_s   REAL NOT NULL,
  flops    REAL NOT NULL,
  bytes    REAL NOT NULL,
  PRIMARY KEY (point, position)
) STRICT, WITHOUT ROWID;

CREATE TABLE links (                    -- what links carried
  point      INTEGER NOT NULL REFERENCES points ON DELETE CASCADE,
  scope      TEXT NOT NULL CHECK (scope IN ('class', 'link')),
  position   INTEGER NOT NULL,
  name       TEXT NOT NULL,             -- accelerator->leaf, or that of the link
  links      INTEGER NOT NULL,          -- physical ones, one way
  bytes      REAL NOT NULL,             -- payload, on all of them
  busy_share REAL NOT NULL,             -- of the run, at full rate; mean of the links
  peak_share REAL NOT NULL,             -- of the busiest link
  PRIMARY KEY (point, scope, position)
) STRICT, WITHOUT ROWID;

-- Rows of kRowTables (sim/results/result_rows.h), for results that have them.
CREATE TABLE requests (                 -- one a served request; times in s from the start of the run
  point         INTEGER NOT NULL REFERENCES points ON DELETE CASCADE,
  position      INTEGER NOT NULL,
  request       REAL, instance REAL, prompt_tokens REAL, output_tokens REAL,
  found_tokens  REAL,                   -- of the prompt, kept from others
  preemptions   REAL, arrival_s REAL, started_s REAL, first_token_s REAL,
  moved_s       REAL,                   -- when its cache came from another instance
  last_token_s  REAL,
  PRIMARY KEY (point, position)
) STRICT, WITHOUT ROWID;

CREATE TABLE samples (                  -- an instance at the end of some of its iterations
  point         INTEGER NOT NULL REFERENCES points ON DELETE CASCADE,
  position      INTEGER NOT NULL,
  time_s        REAL, instance REAL, waiting REAL, running REAL, kv_used_share REAL,
  PRIMARY KEY (point, position)
) STRICT, WITHOUT ROWID;

-- Times of kernels' thread blocks, kept from run to run (kept_rows.h). Rows belong to no
-- point: any number of points may rest on one.
CREATE TABLE tiles (
  key            TEXT PRIMARY KEY,      -- SHA-256 of kinds of blocks, their order, the machine
                                        -- under them, device, kernel, contention, engine version
  device         TEXT NOT NULL,         -- these for people: the key has them
  kernel         TEXT NOT NULL,
  precision      TEXT NOT NULL,
  shape          TEXT NOT NULL,         -- batch x m x n x k
  units          REAL NOT NULL,         -- share of the SMs that the kernel had
  memory         REAL NOT NULL,         -- and of the memory bandwidth
  duration_us    REAL NOT NULL,         -- of the blocks alone
  events         INTEGER NOT NULL,
  engine_version TEXT NOT NULL,
  digest         TEXT NOT NULL          -- SHA-256 of key, duration_us and events
) STRICT, WITHOUT ROWID;

-- Executions of points, those that failed too.
CREATE TABLE attempts (
  point      INTEGER NOT NULL REFERENCES points ON DELETE CASCADE,
  n          INTEGER NOT NULL,          -- 0: the first
  started    TEXT NOT NULL,             -- UTC
  host       TEXT NOT NULL,
  wall_s     REAL NOT NULL,
  user_s     REAL, system_s REAL,       -- CPU; of a process that died with the point: all that it took
  peak_bytes INTEGER,                   -- largest resident memory of the process until then
  exit_code  INTEGER NOT NULL,          -- as the program would have returned it; 0: there was a result
  signal     INTEGER NOT NULL,          -- that ended the process; 0: none
  stderr     TEXT NOT NULL,             -- end of what a process said before it died
  PRIMARY KEY (point, n)
) STRICT, WITHOUT ROWID;

-- Where searches began (kept_rows.h). Their results are points.
CREATE TABLE searches (
  key        TEXT PRIMARY KEY,          -- SHA-256 of what is searched and how
  sweep      TEXT NOT NULL,             -- name of the sweep, for people
  seed       INTEGER NOT NULL,
  begun_from TEXT NOT NULL,             -- places of its plan that were known then: "12 40 7"
  digest     TEXT NOT NULL              -- SHA-256 of key and begun_from
) STRICT, WITHOUT ROWID;

-- Finds failures and results of older engines: for their reasons, and what `sweep gc` drops.
CREATE INDEX points_by_status ON points (status, experiment, engine_version, base);

-- Points once more, by columns (row_groups.h). A group goes with the first change of a point of it:
-- it is made from the rows, and never truer than they.
CREATE TABLE row_groups (
  row_group INTEGER PRIMARY KEY,        -- has points 1024 row_group to 1024 row_group + 1023
  content   BLOB NOT NULL,              -- which points there are, of which kinds, checksums of columns
  digest    TEXT NOT NULL               -- SHA-256 of number and content
) STRICT;

CREATE TABLE column_chunks (
  chunk     INTEGER PRIMARY KEY,
  row_group INTEGER NOT NULL REFERENCES row_groups ON DELETE CASCADE,
  name      TEXT NOT NULL,              -- table/key/column: varied/parallel.tp/value
  content   BLOB NOT NULL,              -- values by point (point_columns.h)
  UNIQUE (row_group, name)
) STRICT;

CREATE TRIGGER points_deleted AFTER DELETE ON points BEGIN
  DELETE FROM row_groups WHERE row_group = old.point / 1024;
END;
CREATE TRIGGER points_changed AFTER UPDATE ON points BEGIN
  DELETE FROM row_groups WHERE row_group = old.point / 1024;
END;
)sql";

}  // namespace orrery
