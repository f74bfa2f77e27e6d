// SPDX-License-Identifier: Apache-2.0
#include <iostream>
#include <optional>
#include <set>

#include "sim/app/cli/answer_text.h"
#include "sim/app/cli/execution_arguments.h"
#include "sim/app/cli/progress.h"
#include "sim/app/cli/verb.h"
#include "sim/app/experiments/file_kind.h"
#include "sim/app/questions/sweep_report.h"
#include "sim/app/sweeps/local_workers.h"
#include "sim/app/sweeps/run_sweep.h"

namespace orrery {
namespace {

struct SweepArguments {
  std::string file, db;
  int jobs = 0;  ///< 0: one for each processor
  ExecutionArguments execution;
  bool json = false;

  void take(Options& options);
  ExitCode run() const;
};

/// @throws UsageError where no point at all can be: then the file is wrong, not a point
void require_any(const SweepResults& results) {
  if (results.points == 0) throw UsageError("the rules of this sweep exclude all of its points");
  if (results.impossible < results.points) return;
  std::set<std::string> reasons;
  for (const PointResult& result : results.kept) reasons.insert(result.record.reason);
  std::string text = "no point of this sweep can be";
  for (const std::string& reason : reasons) text += "\n  " + reason;
  throw UsageError(text);
}

}  // namespace

void SweepArguments::take(Options& options) {
  options.positional("SWEEP", file, "sweep file (YAML)");
  options.option("--db", db, "the store (SQLite); default: <name of the sweep>.db");
  options.number("--jobs", jobs, "processes that simulate points; default: one for each processor",
                 1, 4096);
  execution.take(options);
  options.json(json);
}

ExitCode SweepArguments::run() const {
  expect_kind(file, "sweep");
  const Sweep sweep = load_sweep(file);
  const std::string path = db.empty() ? sweep.config.name + ".db" : db;
  SweepOptions options;
  options.jobs = jobs > 0 ? static_cast<std::size_t>(jobs) : available_processors();
  options.store_locked = [](const std::string& what) {
    std::cerr << what << "; waiting up to a minute\n";
  };
  std::optional<ResultStore> store;
  wait_for_store([&] { store.emplace(ResultStore::open(path)); }, options.store_locked);
  Progress progress("points", static_cast<std::size_t>(sweep.places()));
  options.progress = [&progress](std::uint64_t done, const std::string& name) {
    progress.reach(static_cast<std::size_t>(done), name);
  };
  ExitCode code = ExitCode::kOk;
  const std::optional<SweepResults> found = execution.run(sweep, path, store, options, code);
  if (!found) return code;
  const SweepResults& results = *found;
  require_any(results);
  if (json) std::cerr << counts_of(results) << "\n";
  const SweepFiles files = {file, path};
  print_answer(json ? sweep_points(sweep, results, files) : sweep_report(sweep, results, files),
               json);
  return results.failed > 0 || !results.stopped.empty() ? ExitCode::kPartial : ExitCode::kOk;
}

namespace {

const RegisterVerbGroup registered_sweep("sweep", "design-space exploration into one store");
const RegisterVerb<SweepArguments> registered_sweep_run(
    "sweep run", "simulate the points that the store does not have");
const RegisterVerb<SweepArguments> registered_sweep_resume(
    "sweep resume", "the same as sweep run: go on with what is missing");

}  // namespace

}  // namespace orrery
