-- SPDX-License-Identifier: Apache-2.0
-- The two results of 6.sql as version 7 took them over.
PRAGMA application_id = 1332892281;
PRAGMA user_version = 7;
BEGIN TRANSACTION;
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
INSERT INTO classes VALUES(1,0,'gemm',1,2.6488829999999999103e-06,1048576.0,40960.0);
INSERT INTO classes VALUES(2,0,'gemm',1,2.6714820000000000987e-06,524288.0,24576.0);
CREATE TABLE configurations (
  base INTEGER PRIMARY KEY,
  hash TEXT NOT NULL UNIQUE,            -- SHA-256 of the json
  json TEXT NOT NULL CHECK (json_valid(json))  -- {canonical: {...}, parameters: [[path, text, unit, origin, value], ...]}
) STRICT;
INSERT INTO configurations VALUES(1,'a3c63027c1ce43e13d2cf4690df317e23ec4e0b9ed475a97c03fe5674d080b6d','{"canonical":{"calibration":"auto","contention":{"memory":1.0,"units":1.0},"experiment":"operator","fidelity":"auto","measured":[],"name":"","nodes":1,"operator":{"batch":1,"cluster":0,"k":64,"kind":"gemm","m":64,"n":64,"quantize":false,"sparsity":"none","tile":[],"weights":"as_precision"},"precision":"bf16","seed":0,"system":{"system":"dgx_h100"}},"parameters":[["operator.kind","gemm","","sweep.yaml:4:69"],["operator.m","64","","sweep.yaml:5:32",64.0],["operator.n","64","","sweep.yaml:4:85",64.0],["operator.k","64","","sweep.yaml:4:92",64.0],["operator.batch","1","","default",1.0],["operator.weights","as_precision","","default"],["operator.sparsity","none","","default"],["operator.cluster","0","","default",0.0],["operator.quantize","false","","default"],["precision","bf16","","default"]]}');
CREATE TABLE intervals (                -- of metrics where something was fitted
  point  INTEGER NOT NULL REFERENCES points ON DELETE CASCADE,
  metric TEXT NOT NULL,
  p10    REAL NOT NULL,
  p90    REAL NOT NULL,
  PRIMARY KEY (point, metric)
) STRICT, WITHOUT ROWID;
INSERT INTO intervals VALUES(1,'average_power_w',75.847408762615131649,75.94166438051519208);
INSERT INTO intervals VALUES(1,'bytes_per_s',14671472351.879127501,16303357367.587993621);
INSERT INTO intervals VALUES(1,'energy_j',0.00019079325073433707525,0.00021175174210465063837);
INSERT INTO intervals VALUES(1,'flops_per_s',375589692208.10565184,417365948610.25262449);
INSERT INTO intervals VALUES(1,'share_of_limit',0.0026199057771212727781,0.0029113138156407133982);
INSERT INTO intervals VALUES(1,'simulated_time_s',2.5123659548450320744e-06,2.7918125064492132774e-06);
INSERT INTO intervals VALUES(1,'time_s',2.5123659548450320744e-06,2.7918125064492132774e-06);
INSERT INTO intervals VALUES(2,'average_power_w',75.470281309118362857,75.520311798432203432);
INSERT INTO intervals VALUES(2,'bytes_per_s',8741431487.0884609219,9671389284.9918117518);
INSERT INTO intervals VALUES(2,'energy_j',0.00019190491954971245478,0.00021218007906048444162);
INSERT INTO intervals VALUES(2,'flops_per_s',186483871724.55386352,206322971413.15866088);
INSERT INTO intervals VALUES(2,'share_of_limit',0.0015609699084086537963,0.0017270338008913950836);
INSERT INTO intervals VALUES(2,'simulated_time_s',2.5411033798564347865e-06,2.8114388400000615772e-06);
INSERT INTO intervals VALUES(2,'time_s',2.5411033798564347865e-06,2.8114388400000615772e-06);
CREATE TABLE layouts (                  -- which metrics and labels a result has, in the order of printing
  layout INTEGER PRIMARY KEY,
  json   TEXT NOT NULL UNIQUE           -- {metrics: [[name, unit], ...], labels: [name, ...]}
) STRICT;
INSERT INTO layouts VALUES(1,'{"metrics":[["time_s","s"],["flops","FLOP"],["flops_per_s","FLOP/s"],["bytes","B"],["bytes_per_s","B/s"],["share_of_limit","1"],["clock_hz","Hz"],["energy_j","J"],["average_power_w","W"],["simulated_time_s","s"],["events","1"]],"labels":["bound","fidelity","power_state"]}');
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
CREATE TABLE IF NOT EXISTS "metrics_operator" (point INTEGER PRIMARY KEY REFERENCES points ON DELETE CASCADE, "time_s" REAL, "flops" REAL, "flops_per_s" REAL, "bytes" REAL, "bytes_per_s" REAL, "share_of_limit" REAL, "clock_hz" REAL, "energy_j" REAL, "average_power_w" REAL, "simulated_time_s" REAL, "events" REAL, "bound" TEXT, "fidelity" TEXT, "power_state" TEXT) STRICT;
INSERT INTO metrics_operator VALUES(1,2.6488829999999999103e-06,1048576.0,395855913605.84820555,40960.0,15463121625.228445053,0.0027612717187907938505,1980000000.0,0.00020103202912095965407,75.893132735934230479,2.6488829999999999103e-06,1.0,'latency','closed','burst');
INSERT INTO metrics_operator VALUES(2,2.6714820000000000987e-06,524288.0,196253615034.65118408,24576.0,9199388204.7492732999,0.0016427478937052274014,1980000000.0,0.00020168331606047984428,75.494918573465909618,2.6714820000000000987e-06,1.0,'latency','closed','burst');
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
  old_identity   TEXT                   -- of points that an older store had: they are kept, and
                                        -- never taken for a point of today
, seal TEXT NOT NULL DEFAULT '') STRICT;
INSERT INTO points VALUES(1,'043ee48a485505a9ae1f4af19ebb6769e27419f5b82f04dbfd328dd52a496978','operator','a','ok','',0,1,1,'{"measured":0.0,"calibrated":1.0,"analytic":0.0,"extrapolated":0.0,"calibration":"h100_sxm","note":"intervals cover what rests on measurements"}','13','629fab66ca774923373cbefb0e2d682663e2c7de51ad15d7089eab9ef7ff0b54',NULL,'3751591c3aab85d6e449a4bfa22b06e30bed85e75b1934a62527a5c0affd6004');
INSERT INTO points VALUES(2,'43111d770cb1e69a476961b533fb169805a5039bef0f2427e5b90230a80ddc89','operator','a','ok','',0,1,1,'{"measured":0.0,"calibrated":1.0,"analytic":0.0,"extrapolated":0.0,"calibration":"h100_sxm","note":"intervals cover what rests on measurements"}','13','6d43d116b840c87ee4f21357d426435b12b8fe2ed31f628683fcffc3a911fce1',NULL,'e033f624774826d45568bae8d8b64dac115bb534d0af6b4d09e201bdb6e0911d');
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
CREATE TABLE varied (                   -- what a point has otherwise than its base
  point    INTEGER NOT NULL REFERENCES points ON DELETE CASCADE,
  position INTEGER NOT NULL,
  axis     TEXT NOT NULL,               -- parallel.tp
  value    ANY,                         -- in SI base units, where it is a number; NULL: a flag
  text     TEXT NOT NULL,               -- as written
  origin   TEXT NOT NULL,               -- file:line:column, --set
  PRIMARY KEY (point, position)
) STRICT, WITHOUT ROWID;
INSERT INTO varied VALUES(1,0,'operator.m',128,'128','sweep.yaml:5:36');
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
INSERT INTO attempts VALUES(1,0,'2026-11-24T15:57:30Z','node1',0.039105965999999998949,NULL,NULL,NULL,0,0,'');
INSERT INTO attempts VALUES(2,0,'2026-11-24T15:57:30Z','node1',0.04306185299999999716,NULL,NULL,NULL,0,0,'');
CREATE TABLE searches (
  key        TEXT PRIMARY KEY,          -- SHA-256 of what is searched and how
  sweep      TEXT NOT NULL,             -- name of the sweep, for people
  seed       INTEGER NOT NULL,
  begun_from TEXT NOT NULL,             -- places of its plan that were known then: "12 40 7"
  digest     TEXT NOT NULL              -- SHA-256 of key and begun_from
) STRICT, WITHOUT ROWID;
CREATE INDEX points_by_status ON points (status, experiment, engine_version, base);
CREATE VIEW v_parameters AS
SELECT points.identity, points.name, points.experiment,
  json_extract(p.value, '$[0]') AS path,
  CASE WHEN varied.point IS NULL THEN json_extract(p.value, '$[4]')
       WHEN typeof(varied.value) IN ('integer', 'real') THEN varied.value END AS value,
  json_extract(p.value, '$[2]') AS unit,
  coalesce(varied.text, json_extract(p.value, '$[1]')) AS text,
  coalesce(varied.origin, json_extract(p.value, '$[3]')) AS origin
FROM points JOIN configurations USING (base)
JOIN json_each(configurations.json, '$.parameters') AS p
LEFT JOIN varied ON varied.point = points.point AND varied.axis = json_extract(p.value, '$[0]');
CREATE VIEW v_runs AS SELECT identity, experiment, name, status, reason, engine_version, NULL AS "adapter_loads", NULL AS "algorithm", NULL AS "algorithm_bytes_per_s", "metrics_operator"."average_power_w" AS "average_power_w", NULL AS "backward_time_s", NULL AS "bottleneck", "metrics_operator"."bound" AS "bound", NULL AS "breakdown.bubble_s", NULL AS "breakdown.compute_s", NULL AS "breakdown.contention_s", NULL AS "breakdown.exposed_communication_s", NULL AS "breakdown.host_s", NULL AS "breakdown.idle_s", NULL AS "breakdown.optimizer_s", NULL AS "breakdown.stage", NULL AS "bus_bytes_per_s", NULL AS "busy_share", "metrics_operator"."bytes" AS "bytes", "metrics_operator"."bytes_per_s" AS "bytes_per_s", "metrics_operator"."clock_hz" AS "clock_hz", NULL AS "completed", NULL AS "duration_s", "metrics_operator"."energy_j" AS "energy_j", "metrics_operator"."events" AS "events", NULL AS "expert_skew", "metrics_operator"."fidelity" AS "fidelity", "metrics_operator"."flops" AS "flops", "metrics_operator"."flops_per_s" AS "flops_per_s", NULL AS "flops_per_s_per_accelerator", NULL AS "folding", NULL AS "forward_time_s", NULL AS "hardware_flops_utilization", NULL AS "iterations", NULL AS "kv_blocks", NULL AS "kv_loaded_tokens", NULL AS "kv_memory_shortfall_bytes", NULL AS "kv_tokens", NULL AS "kv_transferred_bytes", NULL AS "mean_e2el_ms", NULL AS "mean_itl_ms", NULL AS "mean_kv_transfer_ms", NULL AS "mean_replicas", NULL AS "mean_tpot_ms", NULL AS "mean_ttft_ms", NULL AS "mean_urgent_ttft_ms", NULL AS "mean_waiting", NULL AS "median_e2el_ms", NULL AS "median_itl_ms", NULL AS "median_kv_transfer_ms", NULL AS "median_tpot_ms", NULL AS "median_ttft_ms", NULL AS "median_urgent_ttft_ms", NULL AS "memory.activations_bytes", NULL AS "memory.flash_bytes", NULL AS "memory.gradients_bytes", NULL AS "memory.kv_cache_bytes", NULL AS "memory.logits_bytes", NULL AS "memory.optimizer_bytes", NULL AS "memory.weights_bytes", NULL AS "memory.working_bytes", NULL AS "memory_shortfall_bytes", NULL AS "model_flops_utilization", NULL AS "output_throughput", NULL AS "output_throughput_per_accelerator", NULL AS "output_throughput_per_user", NULL AS "p90_e2el_ms", NULL AS "p90_itl_ms", NULL AS "p90_kv_transfer_ms", NULL AS "p90_tpot_ms", NULL AS "p90_ttft_ms", NULL AS "p90_urgent_ttft_ms", NULL AS "p95_e2el_ms", NULL AS "p95_itl_ms", NULL AS "p95_kv_transfer_ms", NULL AS "p95_tpot_ms", NULL AS "p95_ttft_ms", NULL AS "p95_urgent_ttft_ms", NULL AS "p99_e2el_ms", NULL AS "p99_itl_ms", NULL AS "p99_kv_transfer_ms", NULL AS "p99_tpot_ms", NULL AS "p99_ttft_ms", NULL AS "p99_urgent_ttft_ms", NULL AS "peak_memory_bytes", "metrics_operator"."power_state" AS "power_state", NULL AS "preemptions", NULL AS "prefix_hit_share", NULL AS "prices", NULL AS "protocol", NULL AS "queue_slope", NULL AS "replayed_operators", NULL AS "replayed_ranks", NULL AS "request_goodput", NULL AS "request_throughput", NULL AS "samples_per_s", NULL AS "samples_per_s_per_accelerator", NULL AS "saturated", NULL AS "saturated_since_s", "metrics_operator"."share_of_limit" AS "share_of_limit", "metrics_operator"."simulated_time_s" AS "simulated_time_s", NULL AS "slo_attainment", NULL AS "slo_met", NULL AS "source", NULL AS "step_time_mean_s", NULL AS "step_time_p10_s", NULL AS "step_time_p50_s", NULL AS "step_time_p90_s", NULL AS "step_time_p99_s", NULL AS "step_time_s", NULL AS "step_time_worst_s", NULL AS "stopped", NULL AS "system_power_w", NULL AS "system_tokens_per_joule", "metrics_operator"."time_s" AS "time_s", NULL AS "tokens_per_joule", NULL AS "tokens_per_s", NULL AS "tokens_per_s_per_accelerator", NULL AS "tokens_per_s_per_user", NULL AS "total_throughput_per_accelerator", NULL AS "total_token_throughput", NULL AS "usd_per_hour", NULL AS "usd_per_million_output_tokens", NULL AS "usd_per_million_tokens", NULL AS "warm_up_s", NULL AS "window_power_w", attempts.wall_s AS wall_time_s FROM points LEFT JOIN "metrics_operator" USING (point) LEFT JOIN attempts ON attempts.point = points.point AND attempts.n = 0;
CREATE VIEW v_best AS SELECT 'time_s' AS metric, 'least' AS best, min("time_s") AS value, 's' AS unit, experiment, name, identity FROM "metrics_operator" JOIN points USING (point) WHERE status = 'ok' HAVING min("time_s") IS NOT NULL UNION ALL SELECT 'flops_per_s' AS metric, 'most' AS best, max("flops_per_s") AS value, 'FLOP/s' AS unit, experiment, name, identity FROM "metrics_operator" JOIN points USING (point) WHERE status = 'ok' HAVING max("flops_per_s") IS NOT NULL UNION ALL SELECT 'bytes_per_s' AS metric, 'most' AS best, max("bytes_per_s") AS value, 'B/s' AS unit, experiment, name, identity FROM "metrics_operator" JOIN points USING (point) WHERE status = 'ok' HAVING max("bytes_per_s") IS NOT NULL UNION ALL SELECT 'share_of_limit' AS metric, 'most' AS best, max("share_of_limit") AS value, '1' AS unit, experiment, name, identity FROM "metrics_operator" JOIN points USING (point) WHERE status = 'ok' HAVING max("share_of_limit") IS NOT NULL UNION ALL SELECT 'simulated_time_s' AS metric, 'least' AS best, min("simulated_time_s") AS value, 's' AS unit, experiment, name, identity FROM "metrics_operator" JOIN points USING (point) WHERE status = 'ok' HAVING min("simulated_time_s") IS NOT NULL;
CREATE VIEW v_failures AS
SELECT identity, experiment, name, reason, count(*) AS attempts, max(n) AS last, started, host,
  wall_s, user_s, system_s, peak_bytes, attempts.exit_code, signal, stderr, engine_version
FROM points JOIN attempts USING (point) WHERE status = 'failed' GROUP BY points.point;
COMMIT;
