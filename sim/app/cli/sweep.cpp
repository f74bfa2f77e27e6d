// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <chrono>
#include <iostream>
#include <set>
#include <string_view>

#include "sim/app/cli/commands.h"
#include "sim/app/experiments/file_kind.h"
#include "sim/app/experiments/progress.h"
#include "sim/app/questions/sweep_report.h"
#include "sim/app/sweeps/run_point.h"
#include "sim/app/sweeps/sweep_config.h"

namespace orrery {
namespace {

RunRecord without_result(const LoadedExperiment& loaded, RunStatus status, std::string reason) {
  RunRecord record;
  record.identity = loaded.identity;
  record.experiment = loaded.experiment->kind;
  record.name = loaded.experiment->name;
  record.status = status;
  record.reason = std::move(reason);
  record.configuration = loaded.configuration;
  return record;
}

/// A point whose values cannot stand together, with the first line of what was said of them:
/// "cannot be: tp 7 does not divide 32 heads (sweep.yaml:7:20)".
RunRecord impossible_record(const LoadedExperiment& loaded, const std::string& message) {
  constexpr std::string_view kError = "error: ";
  const std::string line = message.substr(0, message.find('\n'));
  const std::size_t at = line.find(kError);
  std::string reason = std::string(kCannotBe) + ": ";
  if (at == std::string::npos) {
    reason += line;
  } else {
    reason += line.substr(at + kError.size());
    if (at > 2) reason += " (" + line.substr(0, at - 2) + ")";  // "file:line:column: "
  }
  return without_result(loaded, RunStatus::kInfeasible, std::move(reason));
}

/// Waits for a store that another process locks, up to a minute and not in silence.
template <class Work>
auto patiently(const Work& work) {
  constexpr int kTries = 12;  // of five seconds each
  for (int i = 1;; ++i) {
    try {
      return work();
    } catch (const StoreError& error) {
      if (error.fault() != StoreFault::kBusy || i == kTries) throw;
      if (i == 1) std::cerr << error.what() << "; waiting up to a minute\n";
    }
  }
}

/// Simulates one point in a process of its own and stores it. A failure of the point is a result,
/// not an exception; what cannot be is not stored, because it costs nothing to find out again.
RunRecord run_point(const SweepPoint& point, ResultStore& store, std::vector<TileRow>& tiles) {
  if (!point.loaded.contradiction.empty())
    return impossible_record(point.loaded, point.loaded.contradiction);
  try {
    TimedRecord run = simulate_isolated(point.loaded, &tiles);
    patiently([&] { return store.save(run.record, run.times, run.tiles); });
    return std::move(run.record);
  } catch (const PointFailure& failure) {
    if (failure.code == ExitCode::kUsage) return impossible_record(point.loaded, failure.what());
    return without_result(point.loaded, RunStatus::kFailed, failure.what());
  }
}

SweepResults run_points(const Sweep& sweep, ResultStore& store) {
  SweepResults results;
  std::vector<TileRow> tiles = patiently([&] { return store.tiles(); });
  Progress progress("points", sweep.points.size());
  const auto begin = std::chrono::steady_clock::now();
  for (const SweepPoint& point : sweep.points) {
    // Infeasible points are results too; failed ones are tried again.
    std::optional<RunRecord> stored = patiently([&] { return store.find(point.loaded.identity); });
    if (stored && stored->status != RunStatus::kFailed) {
      ++results.from_store;
      stored->name = point.name;
      results.records.push_back(std::move(*stored));
    } else {
      results.records.push_back(run_point(point, store, tiles));
      if (!cannot_be(results.records.back())) ++results.simulated;
      if (results.records.back().status == RunStatus::kFailed) ++results.failed;
    }
    progress.step(point.name);
  }
  results.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  return results;
}

/// @throws UsageError where no point at all can be: then the file is wrong, not a point
void require_any(const SweepResults& results) {
  const auto& records = results.records;
  if (!std::all_of(records.begin(), records.end(), cannot_be)) return;
  std::set<std::string> reasons;
  for (const RunRecord& record : records) reasons.insert(record.reason);
  std::string text = "no point of this sweep can be";
  for (const std::string& reason : reasons) text += "\n  " + reason;
  throw UsageError(text);
}

}  // namespace

ExitCode sweep_run_command(const SweepArguments& arguments) {
  expect_kind(arguments.file, FileKind::kSweep);
  const Sweep sweep = load_sweep(arguments.file);
  const std::string db = arguments.db.empty() ? sweep.config.name + ".db" : arguments.db;
  ResultStore store = patiently([&] { return ResultStore::open(db); });
  const SweepResults results = run_points(sweep, store);
  require_any(results);
  if (arguments.json) {
    std::cerr << counts_of(results) << "\n";
    std::cout << sweep_to_json(sweep, results, db).dump(2) << "\n";
  } else {
    print_sweep(sweep, results, {arguments.file, db}, std::cout);
  }
  return results.failed > 0 ? ExitCode::kPartial : ExitCode::kOk;
}

}  // namespace orrery
