// SPDX-License-Identifier: Apache-2.0
#include <chrono>
#include <iostream>
#include <map>

#include "sim/app/commands.h"
#include "sim/app/file_kind.h"
#include "sim/app/progress.h"
#include "sim/app/run.h"
#include "sim/app/sweep_config.h"
#include "sim/app/sweep_report.h"

namespace orrery {
namespace {

RunRecord failed_record(const LoadedExperiment& loaded, const Failure& failure) {
  RunRecord record;
  record.identity = loaded.identity;
  record.name = loaded.experiment.name;
  record.status = RunStatus::kFailed;
  record.reason = failure.message;
  record.configuration = loaded.configuration;
  return record;
}

/// Simulates one point in a process of its own and stores it. A failure of the point is a result,
/// not an exception.
RunRecord run_point(const SweepPoint& point, ResultStore& store, std::vector<TileRow>& tiles) {
  try {
    TimedRecord run = simulate_isolated(point.loaded, &tiles);
    store.save(run.record, run.times, run.tiles);
    return std::move(run.record);
  } catch (const PointFailure& failure) {
    return failed_record(point.loaded, {failure.code, failure.what()});
  }
}

SweepResults run_points(const Sweep& sweep, ResultStore& store) {
  SweepResults results;
  std::vector<TileRow> tiles = store.tiles();
  Progress progress("points", sweep.points.size());
  const auto begin = std::chrono::steady_clock::now();
  for (const SweepPoint& point : sweep.points) {
    // Infeasible points are results too; failed ones are tried again.
    std::optional<RunRecord> stored = store.find(point.loaded.identity);
    if (stored && stored->status != RunStatus::kFailed) {
      ++results.from_store;
      stored->name = point.name;
      results.records.push_back(std::move(*stored));
    } else {
      ++results.simulated;
      results.records.push_back(run_point(point, store, tiles));
      if (results.records.back().status == RunStatus::kFailed) ++results.failed;
    }
    progress.step(point.name);
  }
  results.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  return results;
}

}  // namespace

ExitCode sweep_run_command(const SweepArguments& arguments) {
  expect_kind(arguments.file, FileKind::kSweep);
  const Sweep sweep = load_sweep(arguments.file);
  const std::string db = arguments.db.empty() ? sweep.config.name + ".db" : arguments.db;
  ResultStore store = ResultStore::open(db);
  const SweepResults results = run_points(sweep, store);
  if (arguments.json) {
    std::cout << sweep_to_json(sweep, results, db).dump(2) << "\n";
  } else {
    print_sweep(sweep, results, db, std::cout);
  }
  return results.failed > 0 ? ExitCode::kPartial : ExitCode::kOk;
}

}  // namespace orrery
