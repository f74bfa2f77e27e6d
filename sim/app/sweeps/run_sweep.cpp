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

/// Why the values of a point cannot stand together, by the first line of what was said of them:
/// "cannot be: tp 7 does not divide 32 heads (sweep.yaml:7:20)".
std::string impossible(const std::string& message) {
  constexpr std::string_view kError = "error: ";
  const std::string line = message.substr(0, message.find('\n'));
  const std::size_t at = line.find(kError);
  std::string reason = std::string(kCannotBe) + ": ";
  if (at == std::string::npos) return reason + line;
  reason += line.substr(at + kError.size());
  if (at > 2) reason += " (" + line.substr(0, at - 2) + ")";  // "file:line:column: "
  return reason;
}

/// Simulates a point in a worker. What is wrong with one that was made the short way is found again
/// the long way, which knows the places.
TimedRecord run_point(const Sweep& sweep, const SweepPoint& point, TileStore& tiles) {
  SimulateOptions options;
  options.tiles = &tiles;
  options.configuration = false;
  const auto simulated = [&](const LoadedExperiment& loaded) {
    if (!loaded.contradiction.empty())
      throw config::ConfigError(loaded.contradiction, {config::Diagnostic{}});
    TimedRecord run = simulate_timed(loaded, options);
    run.tiles = tiles.take_played();
    return run;
  };
  try {
    return simulated(sweep.load(point));
  } catch (const config::ConfigError&) {
    return simulated(sweep.load_whole(point));
  }
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
      const auto known = sweep_.impossible.find(i);
      std::optional<RunRecord> stored;
      if (known == sweep_.impossible.end())
        patiently([&] { stored = store_.find(point.identity); });
      if (known != sweep_.impossible.end()) {
        RunRecord record =
            without_result(i, RunStatus::kInfeasible, impossible(known->second.contradiction));
        record.base = known->second.configuration;
        record.experiment = record.base->canonical->at("experiment").get<std::string>();
        set(i, std::move(record));
      } else if (stored && stored->status != RunStatus::kFailed) {
        ++results_.from_store;
        stored->name = *point.name;
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
      return to_bytes(run_point(sweep_, sweep_.points[missing[place]], tiles));
    });
    workers.submit({0, missing.size()});
    for (auto outcomes = workers.poll(); !outcomes.empty(); outcomes = workers.poll()) {
      for (PointOutcome& outcome : outcomes) take(missing[outcome.point], outcome);
      if (unsaved_.size() >= kMostUnsaved || Clock::now() - saved_ > kLongestUnsaved) save();
    }
    save();
  }

  RunRecord without_result(std::size_t i, RunStatus status, std::string reason) const {
    RunRecord record;
    record.name = *sweep_.points[i].name;
    record.status = status;
    record.reason = std::move(reason);
    return record;
  }

  void take(std::size_t i, const PointOutcome& outcome) {
    const auto& result = outcome.result;
    const SweepPoint& point = sweep_.points[i];
    const PointGroup& group = *sweep_.groups[point.group];
    const auto* failure = std::get_if<Failure>(&result);
    const bool cannot = failure != nullptr && failure->code == ExitCode::kUsage;
    TimedRecord run;
    if (failure == nullptr) {
      run = timed_record(std::get<std::string>(result));
    } else if (cannot) {
      run.record = without_result(i, RunStatus::kInfeasible, impossible(failure->message));
    } else {
      run.record = without_result(i, RunStatus::kFailed, failure->message);
      run.times = times_now();
      run.times.exit_code = static_cast<int>(failure->code);
      run.times.wall_s = outcome.use.wall_s;
    }
    run.times.signal = outcome.use.signal;
    run.times.user_s = outcome.use.user_s;
    run.times.system_s = outcome.use.system_s;
    run.times.peak_bytes = outcome.use.peak_bytes;
    run.times.stderr_tail = outcome.use.stderr_tail;
    run.record.base = group.configuration();
    run.record.varied = group.varied(point.settings);
    run.record.experiment = group.kind();
    if (cannot) return set(i, std::move(run.record));
    run.record.identity = point.identity;
    ++results_.simulated;
    set(i, std::move(run.record));
    unsaved_.push_back({i, std::move(run.times), std::move(run.tiles)});
  }

  void set(std::size_t i, RunRecord record) {
    results_.records[i] = std::move(record);
    if (options_.progress) options_.progress(*sweep_.points[i].name);
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
