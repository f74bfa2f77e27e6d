-- SPDX-License-Identifier: Apache-2.0
-- Two results as engine 13 stored them in version 5, most of their parameters left out.
PRAGMA application_id = 1332892281;
PRAGMA user_version = 5;
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
INSERT INTO "classes" VALUES(1,0,'gemm',1,2.648883e-06,1048576.0,40960.0);
INSERT INTO "classes" VALUES(2,0,'gemm',1,2.671482e-06,524288.0,24576.0);
CREATE TABLE configurations (
  base INTEGER PRIMARY KEY,
  hash TEXT NOT NULL UNIQUE,            -- SHA-256 of the json
  json TEXT NOT NULL CHECK (json_valid(json))  -- {canonical: {...}, parameters: [[path, text, unit, origin, value], ...]}
) STRICT;
INSERT INTO "configurations" VALUES(1,'a3c63027c1ce43e13d2cf4690df317e23ec4e0b9ed475a97c03fe5674d080b6d','{"canonical":{"calibration":"auto","contention":{"memory":1.0,"units":1.0},"experiment":"operator","fidelity":"auto","measured":[],"name":"","nodes":1,"operator":{"batch":1,"cluster":0,"k":64,"kind":"gemm","m":64,"n":64,"quantize":false,"sparsity":"none","tile":[],"weights":"as_precision"},"precision":"bf16","seed":0,"system":{"system":"dgx_h100"}},"parameters":[["operator.kind","gemm","","sweep.yaml:4:69"],["operator.m","64","","sweep.yaml:5:32",64.0],["operator.n","64","","sweep.yaml:4:85",64.0],["operator.k","64","","sweep.yaml:4:92",64.0],["operator.batch","1","","default",1.0],["operator.weights","as_precision","","default"],["operator.sparsity","none","","default"],["operator.cluster","0","","default",0.0],["operator.quantize","false","","default"],["precision","bf16","","default"]]}');
CREATE TABLE intervals (                -- of metrics where something was fitted
  point  INTEGER NOT NULL REFERENCES points ON DELETE CASCADE,
  metric TEXT NOT NULL,
  p10    REAL NOT NULL,
  p90    REAL NOT NULL,
  PRIMARY KEY (point, metric)
) STRICT, WITHOUT ROWID;
INSERT INTO "intervals" VALUES(1,'average_power_w',7.58474087626151316499e+01,7.59416643805151920804e+01);
INSERT INTO "intervals" VALUES(1,'bytes_per_s',1.46714723518791275019e+10,1.63033573675879936218e+10);
INSERT INTO "intervals" VALUES(1,'energy_j',1.90793250734337075259e-04,2.11751742104650638376e-04);
INSERT INTO "intervals" VALUES(1,'flops_per_s',3.75589692208105651845e+11,4.17365948610252624493e+11);
INSERT INTO "intervals" VALUES(1,'share_of_limit',2.61990577712127277812e-03,2.91131381564071339829e-03);
INSERT INTO "intervals" VALUES(1,'simulated_time_s',2.51236595484503207444e-06,2.7918125064492132774e-06);
INSERT INTO "intervals" VALUES(1,'time_s',2.51236595484503207444e-06,2.7918125064492132774e-06);
INSERT INTO "intervals" VALUES(2,'average_power_w',7.54702813091183628575e+01,75.5203117984322);
INSERT INTO "intervals" VALUES(2,'bytes_per_s',8741431487.08846,9.67138928499181175189e+09);
INSERT INTO "intervals" VALUES(2,'energy_j',1.91904919549712454788e-04,2.12180079060484441623e-04);
INSERT INTO "intervals" VALUES(2,'flops_per_s',1.86483871724553863522e+11,2.06322971413158660881e+11);
INSERT INTO "intervals" VALUES(2,'share_of_limit',1.5609699084086537963e-03,1.72703380089139508363e-03);
INSERT INTO "intervals" VALUES(2,'simulated_time_s',2.54110337985643478658e-06,2.81143884000006157725e-06);
INSERT INTO "intervals" VALUES(2,'time_s',2.54110337985643478658e-06,2.81143884000006157725e-06);
CREATE TABLE layouts (                  -- which metrics and labels a result has, in the order of printing
  layout INTEGER PRIMARY KEY,
  json   TEXT NOT NULL UNIQUE           -- {metrics: [[name, unit], ...], labels: [name, ...]}
) STRICT;
INSERT INTO "layouts" VALUES(1,'{"metrics":[["time_s","s"],["flops","FLOP"],["flops_per_s","FLOP/s"],["bytes","B"],["bytes_per_s","B/s"],["share_of_limit","1"],["clock_hz","Hz"],["energy_j","J"],["average_power_w","W"],["simulated_time_s","s"],["events","1"]],"labels":["bound","fidelity","power_state"]}');
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
CREATE TABLE "metrics_operator" (point INTEGER PRIMARY KEY REFERENCES points ON DELETE CASCADE, "time_s" REAL, "flops" REAL, "flops_per_s" REAL, "bytes" REAL, "bytes_per_s" REAL, "share_of_limit" REAL, "clock_hz" REAL, "energy_j" REAL, "average_power_w" REAL, "simulated_time_s" REAL, "events" REAL, "bound" TEXT, "fidelity" TEXT, "power_state" TEXT) STRICT;
INSERT INTO "metrics_operator" VALUES(1,2.648883e-06,1048576.0,3.95855913605848205557e+11,40960.0,1.54631216252284450535e+10,2.76127171879079385055e-03,1980000000.0,2.01032029120959654074e-04,7.58931327359342304799e+01,2.648883e-06,1.0,'latency','closed','burst');
INSERT INTO "metrics_operator" VALUES(2,2.671482e-06,524288.0,1.96253615034651184081e+11,24576.0,9.19938820474927329996e+09,1.64274789370522740147e-03,1980000000.0,2.01683316060479844288e-04,7.54949185734659096187e+01,2.671482e-06,1.0,'latency','closed','burst');
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
) STRICT;
INSERT INTO "points" VALUES(1,'043ee48a485505a9ae1f4af19ebb6769e27419f5b82f04dbfd328dd52a496978','operator','a','ok','',0,1,1,'{"measured":0.0,"calibrated":1.0,"analytic":0.0,"extrapolated":0.0,"calibration":"h100_sxm","note":"intervals cover what rests on measurements"}','13','629fab66ca774923373cbefb0e2d682663e2c7de51ad15d7089eab9ef7ff0b54',NULL);
INSERT INTO "points" VALUES(2,'43111d770cb1e69a476961b533fb169805a5039bef0f2427e5b90230a80ddc89','operator','a','ok','',0,1,1,'{"measured":0.0,"calibrated":1.0,"analytic":0.0,"extrapolated":0.0,"calibration":"h100_sxm","note":"intervals cover what rests on measurements"}','13','6d43d116b840c87ee4f21357d426435b12b8fe2ed31f628683fcffc3a911fce1',NULL);
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
CREATE TABLE runs (
  point   INTEGER NOT NULL REFERENCES points ON DELETE CASCADE,
  started TEXT NOT NULL,                -- UTC
  host    TEXT NOT NULL,                -- before wall_s: SQLite 3.40 checks the integrity of such
  wall_s  REAL NOT NULL,                -- tables rightly only where the key's columns come first
  PRIMARY KEY (point, started, host)
) STRICT, WITHOUT ROWID;
INSERT INTO "runs" VALUES(1,'2026-11-24T15:57:30Z','node1',0.039105966);
INSERT INTO "runs" VALUES(2,'2026-11-24T15:57:30Z','node1',0.043061853);
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
INSERT INTO "varied" VALUES(1,0,'operator.m',128,'128','sweep.yaml:5:36');
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
CREATE VIEW v_runs AS SELECT identity, experiment, name, status, reason, engine_version, NULL AS "adapter_loads", NULL AS "algorithm", NULL AS "algorithm_bytes_per_s", "metrics_operator"."average_power_w" AS "average_power_w", NULL AS "backward_time_s", NULL AS "bottleneck", "metrics_operator"."bound" AS "bound", NULL AS "breakdown.bubble_s", NULL AS "breakdown.compute_s", NULL AS "breakdown.contention_s", NULL AS "breakdown.exposed_communication_s", NULL AS "breakdown.host_s", NULL AS "breakdown.idle_s", NULL AS "breakdown.optimizer_s", NULL AS "breakdown.stage", NULL AS "bus_bytes_per_s", NULL AS "busy_share", "metrics_operator"."bytes" AS "bytes", "metrics_operator"."bytes_per_s" AS "bytes_per_s", "metrics_operator"."clock_hz" AS "clock_hz", NULL AS "completed", NULL AS "duration_s", "metrics_operator"."energy_j" AS "energy_j", "metrics_operator"."events" AS "events", NULL AS "expert_skew", "metrics_operator"."fidelity" AS "fidelity", "metrics_operator"."flops" AS "flops", "metrics_operator"."flops_per_s" AS "flops_per_s", NULL AS "flops_per_s_per_accelerator", NULL AS "forward_time_s", NULL AS "hardware_flops_utilization", NULL AS "iterations", NULL AS "kv_blocks", NULL AS "kv_loaded_tokens", NULL AS "kv_memory_shortfall_bytes", NULL AS "kv_tokens", NULL AS "kv_transferred_bytes", NULL AS "mean_e2el_ms", NULL AS "mean_itl_ms", NULL AS "mean_kv_transfer_ms", NULL AS "mean_replicas", NULL AS "mean_tpot_ms", NULL AS "mean_ttft_ms", NULL AS "mean_urgent_ttft_ms", NULL AS "mean_waiting", NULL AS "median_e2el_ms", NULL AS "median_itl_ms", NULL AS "median_kv_transfer_ms", NULL AS "median_tpot_ms", NULL AS "median_ttft_ms", NULL AS "median_urgent_ttft_ms", NULL AS "memory.activations_bytes", NULL AS "memory.gradients_bytes", NULL AS "memory.kv_cache_bytes", NULL AS "memory.logits_bytes", NULL AS "memory.optimizer_bytes", NULL AS "memory.weights_bytes", NULL AS "memory.working_bytes", NULL AS "memory_shortfall_bytes", NULL AS "model_flops_utilization", NULL AS "output_throughput", NULL AS "output_throughput_per_accelerator", NULL AS "output_throughput_per_user", NULL AS "p90_e2el_ms", NULL AS "p90_itl_ms", NULL AS "p90_kv_transfer_ms", NULL AS "p90_tpot_ms", NULL AS "p90_ttft_ms", NULL AS "p90_urgent_ttft_ms", NULL AS "p95_e2el_ms", NULL AS "p95_itl_ms", NULL AS "p95_kv_transfer_ms", NULL AS "p95_tpot_ms", NULL AS "p95_ttft_ms", NULL AS "p95_urgent_ttft_ms", NULL AS "p99_e2el_ms", NULL AS "p99_itl_ms", NULL AS "p99_kv_transfer_ms", NULL AS "p99_tpot_ms", NULL AS "p99_ttft_ms", NULL AS "p99_urgent_ttft_ms", NULL AS "peak_memory_bytes", "metrics_operator"."power_state" AS "power_state", NULL AS "preemptions", NULL AS "prefix_hit_share", NULL AS "prices", NULL AS "protocol", NULL AS "queue_slope", NULL AS "request_goodput", NULL AS "request_throughput", NULL AS "saturated", NULL AS "saturated_since_s", "metrics_operator"."share_of_limit" AS "share_of_limit", "metrics_operator"."simulated_time_s" AS "simulated_time_s", NULL AS "slo_attainment", NULL AS "slo_met", NULL AS "step_time_s", NULL AS "stopped", NULL AS "system_power_w", NULL AS "system_tokens_per_joule", "metrics_operator"."time_s" AS "time_s", NULL AS "tokens_per_joule", NULL AS "tokens_per_s", NULL AS "tokens_per_s_per_accelerator", NULL AS "tokens_per_s_per_user", NULL AS "total_throughput_per_accelerator", NULL AS "total_token_throughput", NULL AS "usd_per_hour", NULL AS "usd_per_million_output_tokens", NULL AS "warm_up_s", NULL AS "window_power_w", (SELECT min(wall_s) FROM runs WHERE runs.point = points.point) AS wall_time_s FROM points LEFT JOIN "metrics_operator" USING (point);
COMMIT;
