// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "sim/app/questions/base/verb.h"
#include "sim/app/sweeps/run/run_sweep.h"

namespace orrery {

/// `--where`, a condition beside those of the file.
void take_where(Options& options, std::string& where);
void take_jobs(Options& options, int& jobs);
/// Path of the store of a sweep. @param db what `--db` says; empty: <name of the sweep>.db
std::string store_of(const Sweep& sweep, const std::string& db);
/// Opens a store, and waits while another process locks it.
ResultStore open_store(const std::string& path);
/// Processes that `--jobs` asks for; 0: one for each processor.
std::size_t processes(int jobs);

/// What verbs that run points of a sweep have in common: its file, its store, workers, progress.
struct SweepRunning {
  std::string file, db, progress = "auto";
  std::string where;    ///< a condition beside those of the file; not an option of all verbs
  std::string columns;  ///< columns of tables in the place of those of the file; not of all verbs
  int jobs = 0;         ///< 0: one for each processor

  void take(Options& options);
  /// The sweep of the file. @throws UsageError for a file of another kind, config::ConfigError
  Sweep load() const;
  std::string store_of(const Sweep& sweep) const { return orrery::store_of(sweep, db); }
  ResultStore open_store(const Sweep& sweep) const { return orrery::open_store(store_of(sweep)); }
  /// What runs are told: workers, and what to do while a store is locked; no progress.
  SweepOptions options() const;
  /// Opens the store, and gives it to `work` with what the command line says of the run.
  void with_store(
      const Sweep& sweep,
      const std::function<void(std::optional<ResultStore>&, SweepOptions&)>& work) const;
};

/// Says that a store is locked, and is waited for.
void tell_locked(const std::string& what);

/// 0, or 3 where points failed or are left.
ExitCode exit_code_of(const SweepResults& results);

}  // namespace orrery
