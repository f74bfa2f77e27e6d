// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <optional>
#include <set>
#include <string>

#include "sim/app/cli/verb.h"
#include "sim/app/sweeps/run/run_sweep.h"

namespace orrery {

/// What verbs that run points of a sweep have in common: its file, its store, workers, progress.
struct SweepRunning {
  std::string file, db, progress = "auto";
  std::string where;    ///< a condition beside those of the file; not an option of all verbs
  std::string columns;  ///< columns of tables in the place of those of the file; not of all verbs
  int jobs = 0;         ///< 0: one for each processor

  void take(Options& options);
  /// The sweep of the file. @throws UsageError for a file of another kind, config::ConfigError
  Sweep load() const;
  /// Path of the store.
  std::string store_of(const Sweep& sweep) const;
  ResultStore open_store(const Sweep& sweep) const;
  /// What runs are told: workers, and what to do while a store is locked; no progress.
  SweepOptions options() const;
  /// Opens the store, and gives it to `work` with what the command line says of the run.
  void with_store(
      const Sweep& sweep,
      const std::function<void(std::optional<ResultStore>&, SweepOptions&)>& work) const;
  /// Runs what is to be done, and tells how that comes along. @param only SweepOptions::only
  SweepResults run(const Sweep& sweep, std::optional<std::set<std::string>> only = {}) const;
};

/// Says that a store is locked, and is waited for.
void tell_locked(const std::string& what);

/// 0, or 3 where points failed or are left.
ExitCode exit_code_of(const SweepResults& results);

}  // namespace orrery
