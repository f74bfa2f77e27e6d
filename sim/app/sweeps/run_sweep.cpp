// SPDX-License-Identifier: Apache-2.0
#include "sim/app/sweeps/run_sweep.h"

#include <chrono>
#include <string_view>
#include <utility>

#include "sim/app/experiments/table_columns.h"
#include "sim/app/pricing/tile_store.h"
#include "sim/app/sweeps/local_workers.h"
#include "sim/app/sweeps/run_point.h"

namespace orrery {
namespace {

using Clock = std::chrono::steady_clock;

/// Results wait for so many others, or so long, until they are saved together.
constexpr std::size_t kMostUnsaved = 256;
constexpr std::chrono::milliseconds kLongestUnsaved{500};

RunRecord without_result(const LoadedExperiment& loaded, RunStatus status, std::string reason) {
  RunRecord record;
  record.identity = loaded.identity;
  record.experiment = loaded.experiment->kind;
  record.name = loaded.experiment->name;
  record.status = status;
  record.reason = std::move(reason);
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

/// One run of a sweep.
class SweepRun {
 public:
  SweepRun(const Sweep& sweep, ResultStore& store, const SweepOptions& options)
      : sweep_(sweep), store_(store), options_(options) {
    results_.records.resize(sweep.points.size());
  }

  SweepResults run() {
    const auto begin = Clock::now();
    const std::vector<std::size_t> missing = look_up();
    if (!missing.empty()) simulate(missing);
    for (const RunRecord& record : results_.records)
      if (record.status == RunStatus::kFailed) ++results_.failed;
    results_.seconds = std::chrono::duration<double>(Clock::now() - begin).count();
    return std::move(results_);
  }

 private:
  void patiently(const std::function<void()>& work) { wait_for_store(work, options_.store_locked); }

  /// Reads what the store has; gives the points that are to be simulated.
  std::vector<std::size_t> look_up() {
    std::vector<std::size_t> missing;
    for (std::size_t i = 0; i < sweep_.points.size(); ++i) {
      const SweepPoint& point = sweep_.points[i];
      std::optional<RunRecord> stored;
      patiently([&] { stored = store_.find(point.loaded.identity); });
      if (!point.loaded.contradiction.empty()) {
        set(i, impossible_record(point.loaded, point.loaded.contradiction));
      } else if (stored && stored->status != RunStatus::kFailed) {
        ++results_.from_store;
        stored->name = point.name;
        set(i, std::move(*stored));
      } else {
        missing.push_back(i);
      }
    }
    return missing;
  }

  void simulate(const std::vector<std::size_t>& missing) {
    std::vector<TileRow> known;
    patiently([&] { known = store_.tiles(); });
    TileStore tiles(known);
    known.clear();
    LocalWorkers workers(options_.jobs, [&](std::size_t place) {
      const SweepPoint& point = sweep_.points[missing[place]];
      SimulateOptions options;
      options.tiles = &tiles;
      options.configuration = false;
      TimedRecord run = simulate_timed(point.loaded, options);
      run.tiles = tiles.take_played();
      return to_bytes(run);
    });
    workers.submit({0, missing.size()});
    for (auto outcomes = workers.poll(); !outcomes.empty(); outcomes = workers.poll()) {
      for (PointOutcome& outcome : outcomes) take(missing[outcome.point], outcome.result);
      if (unsaved_.size() >= kMostUnsaved || Clock::now() - saved_ > kLongestUnsaved) save();
    }
    save();
  }

  void take(std::size_t i, const std::variant<std::string, Failure>& result) {
    const LoadedExperiment& loaded = sweep_.points[i].loaded;
    TimedRecord run;
    if (const auto* failure = std::get_if<Failure>(&result)) {
      if (failure->code == ExitCode::kUsage)
        return set(i, impossible_record(loaded, failure->message));
      run.record = without_result(loaded, RunStatus::kFailed, failure->message);
      run.times = times_now();
      run.times.exit_code = static_cast<int>(failure->code);
    } else {
      run = timed_record(std::get<std::string>(result));
    }
    run.record.base = configuration_of(loaded);
    ++results_.simulated;
    set(i, std::move(run.record));
    unsaved_.push_back({i, std::move(run.times), std::move(run.tiles)});
  }

  void set(std::size_t i, RunRecord record) {
    results_.records[i] = std::move(record);
    if (options_.progress) options_.progress(sweep_.points[i].name);
  }

  void save() {
    saved_ = Clock::now();
    if (unsaved_.empty()) return;
    patiently([&] {
      ResultStore::Batch batch = store_.begin();
      for (const Unsaved& done : unsaved_)
        batch.save(results_.records[done.point], done.times, done.tiles);
      batch.commit();
    });
    unsaved_.clear();
  }

  struct Unsaved {
    std::size_t point;
    RunTimes times;
    std::vector<TileRow> tiles;
  };

  const Sweep& sweep_;
  ResultStore& store_;
  const SweepOptions& options_;
  SweepResults results_;
  std::vector<Unsaved> unsaved_;
  Clock::time_point saved_ = Clock::now();
};

}  // namespace

bool cannot_be(const RunRecord& record) { return record.reason.starts_with(kCannotBe); }

void wait_for_store(const std::function<void()>& work,
                    const std::function<void(const std::string&)>& tell) {
  constexpr int kTries = 12;  // of five seconds each
  for (int i = 1;; ++i) {
    try {
      return work();
    } catch (const StoreError& error) {
      if (error.fault() != StoreFault::kBusy || i == kTries) throw;
      if (i == 1 && tell) tell(error.what());
    }
  }
}

SweepResults run_sweep(const Sweep& sweep, ResultStore& store, const SweepOptions& options) {
  return SweepRun(sweep, store, options).run();
}

}  // namespace orrery
