-- SPDX-License-Identifier: Apache-2.0
-- Two results as engine 5 stored them in version 3, most of their parameters left out.
PRAGMA application_id = 1332892281;
PRAGMA user_version = 3;
BEGIN TRANSACTION;
CREATE TABLE points (
  point          INTEGER PRIMARY KEY,   -- short key for the tables below; differs between stores
  identity       TEXT NOT NULL UNIQUE,  -- SHA-256 of inputs and engine version: the lasting key
  experiment     TEXT NOT NULL,
  name           TEXT NOT NULL,
  status         TEXT NOT NULL CHECK (status IN ('ok', 'infeasible', 'failed')),
  reason         TEXT NOT NULL,         -- why infeasible or failed
  configuration  TEXT NOT NULL CHECK (json_valid(configuration)),
  provenance     TEXT NOT NULL CHECK (json_valid(provenance)),
  engine_version TEXT NOT NULL,
  digest         TEXT NOT NULL          -- SHA-256 of the results: equal points must agree in it
) STRICT;
INSERT INTO points VALUES(1,'857bb3733c59a2cc3bf9a6dc79046c96e8294fff3eaea2de7211db207aec808f','operator','','ok','','{"flash_attention":true,"operator":{"m":512,"n":512},"precision":"bf16"}','{"measured":0.0,"calibrated":1.0,"analytic":0.0,"extrapolated":0.0,"calibration":"h100_sxm","note":"intervals cover what rests on measurements"}','5','9deb487f217278b7ad2d655c1b675ddf81aad5b9c2076f4ce104168922d5fa6b');
INSERT INTO points VALUES(2,'066bd851c05ada2f29513d34509d654c5b1bdc9a3ecf1e553f27397530fe4c33','collective','','ok','','{"collective":{"bytes":1048576.0},"flash_attention":true,"precision":"bf16"}','{"measured":0.0,"calibrated":1.0,"analytic":0.0,"extrapolated":0.0,"calibration":"dgx_h100","note":"intervals cover what rests on measurements"}','5','a6e58f31add1da48ceca1bed287c87494ae156e4ef4af6300978205ec2e3880c');
CREATE TABLE metrics (
  point    INTEGER NOT NULL REFERENCES points ON DELETE CASCADE,
  name     TEXT NOT NULL,
  position INTEGER NOT NULL,            -- order in which it was printed
  value    REAL,                        -- a number in the unit, or
  text     TEXT,                        -- a word ("ring")
  unit     TEXT NOT NULL,
  p10      REAL,                        -- interval; NULL where nothing was fitted
  p90      REAL,
  PRIMARY KEY (point, name),
  CHECK ((value IS NULL) <> (text IS NULL))
) STRICT, WITHOUT ROWID;
INSERT INTO metrics VALUES(1,'average_power_w',8,160.44830559458955576,NULL,'W',156.25118257917802112,164.85889877022717087);
INSERT INTO metrics VALUES(1,'bound',11,NULL,'latency','',NULL,NULL);
INSERT INTO metrics VALUES(1,'bytes',3,1572864.0,NULL,'B',NULL,NULL);
INSERT INTO metrics VALUES(1,'bytes_per_s',4,415524579756.84027099,NULL,'B/s',395114362837.6239624,436972195348.38903807);
INSERT INTO metrics VALUES(1,'clock_hz',6,1979912997.7321968078,NULL,'Hz',NULL,NULL);
INSERT INTO metrics VALUES(1,'energy_j',7,0.00060733678830361453784,NULL,'J',0.00059340262389890327879,0.00062200173605982838655);
INSERT INTO metrics VALUES(1,'events',10,1.0,NULL,'1',NULL,NULL);
INSERT INTO metrics VALUES(1,'fidelity',12,NULL,'closed','',NULL,NULL);
INSERT INTO metrics VALUES(1,'flops',1,268435456.0,NULL,'FLOP',NULL,NULL);
INSERT INTO metrics VALUES(1,'flops_per_s',2,70916194945167.406247,NULL,'FLOP/s',67432851257621.15625,74576588006125.062498);
INSERT INTO metrics VALUES(1,'share_of_limit',5,0.12403718798711650672,NULL,'1',0.11794458592167880728,0.13043946129802658218);
INSERT INTO metrics VALUES(1,'simulated_time_s',9,3.7852490000000000684e-06,NULL,'s',3.599460141270516225e-06,3.9807816367495182266e-06);
INSERT INTO metrics VALUES(1,'time_s',0,3.7852490000000000684e-06,NULL,'s',3.599460141270516225e-06,3.9807816367495182266e-06);
INSERT INTO metrics VALUES(2,'algorithm',6,NULL,'ring','',NULL,NULL);
INSERT INTO metrics VALUES(2,'algorithm_bytes_per_s',1,42964692261.523704528,NULL,'B/s',NULL,NULL);
INSERT INTO metrics VALUES(2,'bottleneck',8,NULL,'system0/node0/accelerator0->nvswitches','',NULL,NULL);
INSERT INTO metrics VALUES(2,'bus_bytes_per_s',2,75188211457.666488646,NULL,'B/s',NULL,NULL);
INSERT INTO metrics VALUES(2,'events',5,2.0,NULL,'1',NULL,NULL);
INSERT INTO metrics VALUES(2,'protocol',7,NULL,'ll','',NULL,NULL);
INSERT INTO metrics VALUES(2,'share_of_limit',3,0.095477093914497129789,NULL,'1',0.091397696217545079666,0.10160672685113773805);
INSERT INTO metrics VALUES(2,'simulated_time_s',4,2.4405527999999998599e-05,NULL,'s',2.2933214769360491056e-05,2.5494831766247301936e-05);
INSERT INTO metrics VALUES(2,'time_s',0,2.4405527999999998599e-05,NULL,'s',2.2933214769360491056e-05,2.5494831766247301936e-05);
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
INSERT INTO classes VALUES(1,0,'gemm',1,3.7852490000000000684e-06,268435456.0,1572864.0);
CREATE TABLE parameters (               -- the resolved configuration, value by value
  point    INTEGER NOT NULL REFERENCES points ON DELETE CASCADE,
  position INTEGER NOT NULL,
  path     TEXT NOT NULL,               -- parallel.tp
  value    REAL,                        -- SI base units, where it is a number
  unit     TEXT NOT NULL,
  text     TEXT NOT NULL,               -- as written
  origin   TEXT NOT NULL,               -- file:line:column, --set, default
  PRIMARY KEY (point, position)
) STRICT, WITHOUT ROWID;
INSERT INTO parameters VALUES(1,208,'precision',NULL,'','bf16','default');
INSERT INTO parameters VALUES(1,210,'flash_attention',NULL,'','true','default');
INSERT INTO parameters VALUES(1,220,'operator.m',512.0,'','512','gemm.yaml:3:27');
INSERT INTO parameters VALUES(1,221,'operator.n',512.0,'','512','gemm.yaml:3:35');
INSERT INTO parameters VALUES(2,208,'precision',NULL,'','bf16','default');
INSERT INTO parameters VALUES(2,210,'flash_attention',NULL,'','true','default');
INSERT INTO parameters VALUES(2,220,'collective.bytes',1048576.0,'B','1 MiB','coll.yaml:3:39');
CREATE TABLE runs (
  point   INTEGER NOT NULL REFERENCES points ON DELETE CASCADE,
  started TEXT NOT NULL,                -- UTC
  host    TEXT NOT NULL,                -- before wall_s: SQLite 3.40 checks the integrity of such
  wall_s  REAL NOT NULL,                -- tables rightly only where the key's columns come first
  PRIMARY KEY (point, started, host)
) STRICT, WITHOUT ROWID;
INSERT INTO runs VALUES(1,'2026-11-23T03:19:14Z','node1',0.044435805000000001829);
INSERT INTO runs VALUES(2,'2026-11-23T03:19:14Z','node1',0.00077404299999999997498);
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
CREATE TABLE links (
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
INSERT INTO links VALUES(2,'class',0,'accelerator->nvswitches',144,14680064.0,0.40212975776262327443,0.40212975776262327443);
INSERT INTO links VALUES(2,'class',1,'nvswitches->accelerator',144,14680064.0,0.40212975776262327443,0.40212975776262327443);
CREATE INDEX metrics_by_value ON metrics (name, value);
CREATE INDEX parameters_by_path ON parameters (path, value);
COMMIT;
