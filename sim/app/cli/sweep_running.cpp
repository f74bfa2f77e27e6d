// SPDX-License-Identifier: Apache-2.0
#include "sim/app/cli/sweep_running.h"

#include <iostream>
#include <utility>

#include "sim/app/cli/sweep_progress.h"
#include "sim/app/experiments/files/file_kind.h"
#include "sim/app/sweeps/plan/check_sweep.h"
#include "sim/app/sweeps/workers/local_workers.h"

namespace orrery {

void SweepRunning::take(Options& options) {
  options.positional("SWEEP", file, "sweep file (YAML)");
  options.option("--db", db, "the store (SQLite); default: <name of the sweep>.db");
  options.number("--jobs", jobs, "processes that simulate points; default: one for each processor",
                 1, 4096);
  take_progress(options, progress);
}

Sweep SweepRunning::load() const {
  expect_kind(file, "sweep");
  Sweep sweep = load_sweep(file, where, columns);
  require_points(sweep);  // before a store is made
  return sweep;
}

std::string SweepRunning::store_of(const Sweep& sweep) const {
  return db.empty() ? sweep.config.name + ".db" : db;
}

SweepOptions SweepRunning::options() const {
  SweepOptions options;
  options.jobs = jobs > 0 ? static_cast<std::size_t>(jobs) : available_processors();
  options.store_locked = tell_locked;
  return options;
}

ResultStore SweepRunning::open_store(const Sweep& sweep) const {
  std::optional<ResultStore> store;
  wait_for_store([&] { store.emplace(ResultStore::open(store_of(sweep))); }, tell_locked);
  return std::move(*store);
}

void SweepRunning::with_store(
    const Sweep& sweep,
    const std::function<void(std::optional<ResultStore>&, SweepOptions&)>& work) const {
  SweepOptions options = this->options();
  std::optional<ResultStore> store(open_store(sweep));
  SweepProgress shown(progress_form(progress));
  options.progress = [&shown](const SweepTally& tally) { shown.tell(tally); };
  work(store, options);
}

SweepResults SweepRunning::run(const Sweep& sweep,
                               std::optional<std::set<std::string>> only) const {
  SweepResults results;
  with_store(sweep, [&](std::optional<ResultStore>& store, SweepOptions& options) {
    options.only = std::move(only);
    results = run_sweep(sweep, *store, options);
  });
  return results;
}

void tell_locked(const std::string& what) { std::cerr << what << "; waiting up to a minute\n"; }

ExitCode exit_code_of(const SweepResults& results) {
  return results.failed > 0 || !results.stopped.empty() ? ExitCode::kPartial : ExitCode::kOk;
}

}  // namespace orrery
