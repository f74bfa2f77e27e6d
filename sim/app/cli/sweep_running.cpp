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
  take_jobs(options, jobs);
  take_progress(options, progress);
}

void take_where(Options& options, std::string& where) {
  options.option("--where", where, "condition that points must keep, beside those of the file");
}

void take_jobs(Options& options, int& jobs) {
  options.number("--jobs", jobs, "processes that simulate points; default: one for each processor",
                 1, 4096);
}

Sweep SweepRunning::load() const {
  expect_kind(file, "sweep");
  Sweep sweep = load_sweep(file, where, columns);
  require_points(sweep);  // before a store is made
  return sweep;
}

std::string store_of(const Sweep& sweep, const std::string& db) {
  return db.empty() ? sweep.config.name + ".db" : db;
}

ResultStore open_store(const std::string& path) {
  std::optional<ResultStore> store;
  wait_for_store([&] { store.emplace(ResultStore::open(path)); }, tell_locked);
  return std::move(*store);
}

std::size_t processes(int jobs) {
  return jobs > 0 ? static_cast<std::size_t>(jobs) : available_processors();
}

SweepOptions SweepRunning::options() const {
  SweepOptions options;
  options.jobs = processes(jobs);
  options.store_locked = tell_locked;
  return options;
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

void tell_locked(const std::string& what) { std::cerr << what << "; waiting up to a minute\n"; }

ExitCode exit_code_of(const SweepResults& results) {
  return results.failed > 0 || !results.stopped.empty() ? ExitCode::kPartial : ExitCode::kOk;
}

}  // namespace orrery
