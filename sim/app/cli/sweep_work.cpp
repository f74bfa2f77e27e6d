// SPDX-License-Identifier: Apache-2.0
#include <fmt/core.h>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>

#include "sim/app/cli/sweep_progress.h"
#include "sim/app/cli/sweep_running.h"
#include "sim/app/experiments/core/exit_codes.h"
#include "sim/app/experiments/files/file_kind.h"
#include "sim/app/questions/base/verb.h"
#include "sim/app/questions/sweep_report.h"
#include "sim/app/sweeps/executors/task_folder.h"
#include "sim/app/sweeps/run/run_sweep.h"
#include "sim/app/sweeps/workers/heartbeat.h"

namespace orrery {
namespace {

/// What a task of an executor runs.
struct SweepWorkArguments {
  std::string file, places, shard, from, where, progress = "auto";
  int jobs = 0;  ///< 0: one for each processor

  void take(Options& options) {
    options.positional("SWEEP", file, "sweep file (YAML)");
    options.positional("PLACES", places,
                       "places of its plan, from the first to the one before the last: 0..100, or "
                       "0..100,120..130");
    options.option("--shard", shard, "store for the results of these points alone (SQLite)");
    take_jobs(options, jobs);
    options.option("--from", from,
                   "folder that the names of files start from; default: the present one");
    take_where(options, where);
    take_progress(options, progress);
    options.examples({"sweep work sweep.yaml 0..1000 --shard 0.db",
                      "sweep work sweep.yaml 1000..2000 --shard 1.db",
                      "sweep merge sweep.db 0.db 1.db"});
  }

  Answer answer() const {
    if (shard.empty()) throw UsageError("--shard is missing: a file for the results");
    const std::optional<Places> only = parse_places(places);
    if (!only)
      throw UsageError(fmt::format("'{}' are no places: write 0..100, or 0..100,120..130", places));
    const std::string results_file = std::filesystem::absolute(shard).string();
    std::error_code fault;
    if (!from.empty()) std::filesystem::current_path(from, fault);
    if (fault) throw UsageError(fmt::format("--from {}: {}", from, fault.message()));
    expect_kind(file, "sweep");
    const Sweep sweep = load_sweep(file, where);
    if (only->back().last > sweep.places())
      throw UsageError(fmt::format("{}: {} has {} places", places, file, sweep.places()));
    SweepOptions options;
    options.jobs = processes(jobs);
    options.places = *only;
    options.store_locked = tell_locked;
    std::set<std::size_t> cannot_be;
    options.cannot_be = [&cannot_be](std::uint64_t place) {
      cannot_be.insert(static_cast<std::size_t>(place));
    };
    std::optional<ResultStore> store = open_store(results_file);
    Heartbeat alive(beside_shard::alive(results_file));
    SweepProgress shown(progress_form(progress));
    options.progress = [&](const SweepTally& tally) {
      alive.tell(tally.done);
      shown.tell(tally);
    };
    const SweepResults results = run_sweep(sweep, *store, options);
    store.reset();
    Places written;
    for (const std::size_t place : cannot_be) append(written, place);
    if (results.stopped.empty()) write_ended(results_file, written);
    return {.parts = {counts_of(results) + "\n"},
            .json = {{"schema", "orrery.work/1"},
                     {"shard", shard},
                     {"points", results.points},
                     {"from_shard", results.from_store},
                     {"simulated", results.simulated},
                     {"failed", results.failed},
                     {"cannot_be", results.impossible},
                     {"stopped", results.stopped}},
            .code = exit_code_of(results)};
  }
};

const RegisterQuestion<SweepWorkArguments> registered_sweep_work(
    "sweep work", "simulate some places of a plan into a store of their own, a shard");

}  // namespace
}  // namespace orrery
