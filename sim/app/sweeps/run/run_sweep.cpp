// SPDX-License-Identifier: Apache-2.0
#include "sim/app/sweeps/run/run_sweep.h"

#include <algorithm>
#include <chrono>
#include <map>
#include <optional>
#include <string_view>
#include <utility>

#include "sim/app/experiments/core/simulate.h"
#include "sim/app/experiments/keys/table_columns.h"
#include "sim/app/pricing/tile_store.h"
#include "sim/app/sweeps/plan/plan_cursor.h"
#include "sim/app/sweeps/workers/local_workers.h"
#include "sim/app/sweeps/workers/run_point.h"
#include "sim/app/sweeps/workers/task_guards.h"

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

/// Points that are given to workers before the first of them are back.
constexpr std::size_t kGivenAhead = 64;
/// The plan is read for so long while workers wait to be heard.
constexpr std::chrono::milliseconds kLongestReading{50};
/// Points that failed or cannot be that are shown of a large sweep.
constexpr std::size_t kMostShown = 20;

std::uint64_t places_looked_at(const Sweep& sweep, const SweepOptions& options) {
  if (options.only) return options.only->size();
  return options.places.empty() ? sweep.places() : size_of(options.places);
}

class SweepRun {
 public:
  SweepRun(const Sweep& sweep, ResultStore& store, const SweepOptions& options)
      : sweep_(sweep),
        store_(store),
        options_(options),
        plan_(sweep, options.places),
        settled_(sweep),
        best_(sweep.config) {
    tally_.places = places_looked_at(sweep, options);
    results_.all_kept = options.keep_all || sweep.places() <= SweepResults::kMostKept;
    for (const SweepRow& row : sweep.rows)
      results_.excluded.emplace_back(sweep.rules[row.case_index].where.size());
    for (std::uint32_t i = 0; i < sweep.config.cases.size(); ++i) {
      limits_.push_back(sweep.config.limits_of(sweep.config.cases[i]));
      point_limits_.push_back(limits_.back().of_point());
      failed_.push_back(0);
    }
  }

  SweepResults run() {
    const auto begin = Clock::now();
    const LeavesOnSignals signals;
    std::vector<TileRow> known;
    patiently([&] { known = store_.tiles(); });
    TileStore tiles(known);
    known.clear();
    std::optional<PlanCursor> plan;  // of a worker: it is made there
    LocalWorkers workers(
        options_.jobs,
        [&](std::size_t place) {
          if (!plan) plan.emplace(sweep_);
          plan->seek(place);
          return to_bytes(run_point(sweep_, plan->point(), tiles));
        },
        [this](std::size_t place) { return limits_of(place); });
    workers_ = &workers;
    for (;;) {
      read_plan();
      const auto outcomes = workers.poll();
      for (const PointOutcome& outcome : outcomes) settle(outcome);
      if (is_read() && given_ == 0) break;
      if (LeavesOnSignals::leaves()) results_.stopped = "by a signal, run it again to go on";
      if (unsaved_.size() >= kMostUnsaved || Clock::now() - saved_ > kLongestUnsaved) save();
      if (!results_.stopped.empty()) break;
    }
    save();
    patiently([&] { store_.group_rows(); });
    keep_in_order();
    results_.seconds = std::chrono::duration<double>(Clock::now() - begin).count();
    return std::move(results_);
  }

 private:
  void patiently(const std::function<void()>& work) { wait_for_store(work, options_.store_locked); }

  /// What a point may take, by the limits of its case.
  PointLimits limits_of(std::size_t place) const {
    const PlanBlock& block = sweep_.blocks[sweep_.block_at(place)];
    return point_limits_[sweep_.rows[block.row].case_index];
  }

  /// Gives the workers what they have to do for a while, and settles what need not run.
  void read_plan() {
    const auto begin = Clock::now();
    PointRange range;
    for (; !is_read() && given_ < kGivenAhead * options_.jobs; plan_.next()) {
      if (given_ > 0 && Clock::now() - begin > kLongestReading) break;
      if (options_.only && !is_asked_for()) continue;
      if (plan_.kind() != PlaceKind::kPoint) {
        if (plan_.kind() == PlaceKind::kExcluded) count_excluded();
        tally_.done += plan_.covers();
        continue;
      }
      ++results_.points;
      if (settle_known()) continue;
      if (!simulates()) {
        ++tally_.done;
        continue;
      }
      const auto place = static_cast<std::size_t>(plan_.place());
      if (range.last != place) {
        workers_->submit(range);
        range = {place, place};
      }
      ++range.last;
      ++given_;
    }
    workers_->submit(range);
  }

  /// Whether the present point may be simulated where the store has no result of it.
  bool simulates() const { return !options_.simulates || options_.simulates(plan_.place()); }

  /// Whether nothing is left in the plan that is to be looked at.
  bool is_read() const {
    return plan_.at_end() || (options_.only && results_.points == options_.only->size());
  }

  /// Whether `only` has the present place.
  bool is_asked_for() {
    return plan_.kind() == PlaceKind::kPoint && options_.only->count(plan_.identity()) > 0;
  }

  void count_excluded() {
    results_.excluded[plan_.row_index()][plan_.rule()] += plan_.covers();
    tally_.excluded += plan_.covers();
  }

  /// What the store has of the present point, or why it cannot be. @return false: it is to be run
  bool settle_known() {
    const std::string identity = plan_.identity();
    if (identity.empty()) {
      RunRecord record =
          without_result(plan_, RunStatus::kInfeasible, impossible(plan_.whole().contradiction));
      finish(plan_, std::move(record));
      return true;
    }
    std::optional<RunStatus> status;
    patiently([&] { status = store_.status(identity); });
    if (!status || (*status == RunStatus::kFailed && simulates())) return false;
    ++results_.from_store;
    if (!results_.all_kept) {
      if (*status == RunStatus::kInfeasible) ++results_.infeasible;
      ++tally_.done;
      tell();
      return true;
    }
    std::optional<RunRecord> stored;
    patiently([&] { stored = store_.find(identity); });
    stored->name = plan_.row().name;
    finish(plan_, std::move(*stored));
    return true;
  }

  void settle(const PointOutcome& outcome) {
    settled_.seek(outcome.point);
    const LimitsConfig& limits = limits_[settled_.case_index()];
    if (outcome.died && tries_[outcome.point]++ < limits.retries)
      return workers_->submit({outcome.point, outcome.point + 1});
    tries_.erase(outcome.point);
    --given_;
    const auto* failure = std::get_if<Failure>(&outcome.result);
    const bool cannot = failure != nullptr && failure->code == ExitCode::kUsage;
    TimedRecord run;
    if (failure == nullptr) {
      run = timed_record(std::get<std::string>(outcome.result));
      describe(settled_, run.record);
    } else if (cannot) {
      refuse_broken_file(failure->message);
      if (options_.cannot_be) options_.cannot_be(outcome.point);
      return finish(settled_,
                    without_result(settled_, RunStatus::kInfeasible, impossible(failure->message)));
    } else {
      run.record = without_result(settled_, RunStatus::kFailed, failure->message);
      run.times = times_now();
      run.times.exit_code = static_cast<int>(failure->code);
      run.times.wall_s = outcome.use.wall_s;
      count_failure();
    }
    run.times.signal = outcome.use.signal;
    run.times.user_s = outcome.use.user_s;
    run.times.system_s = outcome.use.system_s;
    run.times.peak_bytes = outcome.use.peak_bytes;
    run.times.stderr_tail = outcome.use.stderr_tail;
    run.record.identity = settled_.identity();
    ++results_.simulated;
    unsaved_.push_back(run);
    finish(settled_, std::move(run.record));
  }

  /// @throws config::ConfigError where a file that the settled point reads is broken: that is no
  /// contradiction of its values
  void refuse_broken_file(const std::string& message) {
    if (message.starts_with(sweep_.path)) return;
    const LoadedExperiment loaded = sweep_.load_whole(settled_.point());
    for (const InputFile& file : loaded.files) {
      if (!message.starts_with(file.path + ":")) continue;
      save();
      throw config::ConfigError(message, {config::Diagnostic{}});
    }
  }

  void count_failure() {
    const std::uint32_t index = settled_.case_index();
    const std::string why = sweep_.too_many(++failed_[index], index);
    if (!why.empty()) results_.stopped = why;
  }
  /// Counts a point, and keeps it where it is shown.
  void finish(const PlanCursor& at, RunRecord record) {
    ++tally_.done;
    tally_.last = record.name;
    best_.look_at(record, at.case_index(), [&] {
      const std::string axes = Sweep::axes(at.point());
      return record.name + (axes.empty() ? "" : ", " + axes);
    });
    const bool failed = record.status == RunStatus::kFailed;
    const bool cannot = cannot_be(record);
    if (failed) ++results_.failed;
    if (cannot) ++results_.impossible;
    if (record.status == RunStatus::kInfeasible && !cannot) ++results_.infeasible;
    tell();
    const bool shown =
        (failed && results_.failed <= kMostShown) || (cannot && results_.impossible <= kMostShown);
    if (!results_.all_kept && !shown) return;
    SweepPoint point = at.point();
    point.identity = record.identity;
    results_.kept.push_back({std::move(point), std::move(record)});
  }

  void tell() {
    if (!options_.progress) return;
    tally_.simulated = results_.simulated;
    tally_.from_store = results_.from_store;
    tally_.impossible = results_.impossible;
    tally_.failed = results_.failed;
    tally_.best = best_.result();
    options_.progress(tally_);
  }

  void keep_in_order() {
    std::ranges::sort(results_.kept, {}, [](const PointResult& r) { return r.point.place; });
    for (PointResult& kept : results_.kept) kept.record.name = *kept.point.name;
  }

  void save() {
    saved_ = Clock::now();
    if (unsaved_.empty()) return;
    patiently([&] {
      ResultStore::Batch batch = store_.begin();
      for (const TimedRecord& done : unsaved_) batch.save(done.record, done.times, done.tiles);
      batch.commit();
    });
    unsaved_.clear();
  }

  const Sweep& sweep_;
  ResultStore& store_;
  const SweepOptions& options_;
  PlanCursor plan_;     ///< what is to be given to workers
  PlanCursor settled_;  ///< points that are back
  LocalWorkers* workers_ = nullptr;
  std::vector<LimitsConfig> limits_;  ///< limits by case
  std::vector<PointLimits> point_limits_;
  std::vector<std::uint64_t> failed_;
  std::map<std::size_t, int> tries_;  ///< tries of points whose process died
  std::size_t given_ = 0;             ///< points that workers have
  SweepTally tally_;                  ///< how far it has come
  BestSoFar best_;
  SweepResults results_;
  std::vector<TimedRecord> unsaved_;
  Clock::time_point saved_ = Clock::now();
};

}  // namespace

bool cannot_be(const RunRecord& record) { return record.reason.starts_with(kCannotBe); }

void wait_for_store(const std::function<void()>& work,
                    const std::function<void(const std::string&)>& tell) {
  // Of five seconds each. Where a disk stalls a commit takes seconds, and of 32 writers some wait
  // for 16 s in ten minutes (Crowd): that is no lock that somebody should know of.
  constexpr int kMostTries = 12, kToldAfter = 6;
  for (int i = 1;; ++i) {
    try {
      return work();
    } catch (const StoreError& error) {
      if (error.fault() != StoreFault::kBusy || i == kMostTries) throw;
      if (i == kToldAfter && tell) tell(error.what());
    }
  }
}

SweepResults run_sweep(const Sweep& sweep, ResultStore& store, const SweepOptions& options) {
  return SweepRun(sweep, store, options).run();
}

void describe(const PlanCursor& at, RunRecord& record) {
  if (at.group() != nullptr) {
    record.base = at.group()->configuration();
    record.varied = at.group()->varied(at.values());
    record.experiment = at.group()->kind();
  } else {
    record.base = configuration_of(at.whole());
    record.experiment = at.whole().experiment->kind;
  }
}

RunRecord without_result(const PlanCursor& at, RunStatus status, std::string reason) {
  RunRecord record;
  record.name = at.row().name;
  record.status = status;
  record.reason = std::move(reason);
  describe(at, record);
  return record;
}

}  // namespace orrery
