// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <iostream>
#include <optional>
#include <set>

#include "sim/app/cli/commands.h"
#include "sim/app/experiments/file_kind.h"
#include "sim/app/experiments/progress.h"
#include "sim/app/questions/sweep_report.h"
#include "sim/app/sweeps/local_workers.h"
#include "sim/app/sweeps/run_sweep.h"

namespace orrery {
namespace {

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
  SweepOptions options;
  options.jobs = arguments.jobs > 0 ? arguments.jobs : available_processors();
  options.store_locked = [](const std::string& what) {
    std::cerr << what << "; waiting up to a minute\n";
  };
  std::optional<ResultStore> store;
  wait_for_store([&] { store.emplace(ResultStore::open(db)); }, options.store_locked);
  Progress progress("points", sweep.points.size());
  options.progress = [&progress](const std::string& name) { progress.step(name); };
  const SweepResults results = run_sweep(sweep, *store, options);
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
