// SPDX-License-Identifier: Apache-2.0
#include "sim/app/sweeps/run/run_tasks.h"

#include <fmt/core.h>
#include <algorithm>
#include <chrono>
#include <cmath>
#include <deque>
#include <filesystem>
#include <numeric>
#include <thread>
#include <utility>

#include "sim/app/sweeps/executors/given_tasks.h"
#include "sim/app/sweeps/executors/task_executor.h"
#include "sim/app/sweeps/plan/plan_counts.h"
#include "sim/app/sweeps/run/missing_points.h"
#include "sim/app/sweeps/run/run_sweep.h"
#include "sim/app/sweeps/workers/run_point.h"
#include "sim/app/sweeps/workers/task_guards.h"
#include "sim/store/merge.h"

namespace orrery {
namespace {

namespace fs = std::filesystem;
using TaskClock = std::chrono::steady_clock;

/// Folders are looked at so often, and less often where there are more tasks than kFew.
constexpr std::chrono::milliseconds kLook{500};
constexpr std::size_t kFew = 100;
/// Between two tries of giving tasks, and how long they are tried.
constexpr std::chrono::seconds kGiveAgain{10}, kLongestRefused{600};
/// Tasks of the same points that end one after the other without any result; and the same where no
/// task at all has brought one.
constexpr int kMostFruitless = 6, kMostBarren = 4;

struct TaskToGive {
  Places places;
  Tries tries = {};
  TaskClock::time_point not_before = {};
};

class TaskRun {
 public:
  TaskRun(const Sweep& sweep, ResultStore& store, const config::OneOf<ExecutionConfig>& execution,
          const TaskRunOptions& options)
      : sweep_(sweep),
        store_(store),
        execution_(execution),
        options_(options),
        executor_(execution->make()),
        below_(tasks_of(options.store_file)),
        alone_(below_),
        given_(*executor_, execution) {
    work_ = {fs::read_symlink("/proc/self/exe").string(), options.sweep_file,
             fs::current_path().string(), execution->cpus, options.where};
    failed_.resize(sweep.config.cases.size());
  }

  TaskRunEnd run() {
    const auto begin = TaskClock::now();
    bool leaves = false;
    {
      const LeavesOnSignals signals;
      adopt();
      plan();
      while (stopped_.empty() && !LeavesOnSignals::leaves()) {
        give();
        if (!options_.wait || is_over()) break;
        tell_progress();
        std::this_thread::sleep_for(kLook * (1 + given_.size() / kFew));
        settle(given_.take_ended());
        settle(given_.take_lost_now_and_then());
      }
      leaves = LeavesOnSignals::leaves();
    }
    if (!stopped_.empty()) end_all();
    if (leaves || (stopped_.empty() && !is_over())) return without_results();
    tell_progress();
    given_.clear_out();
    return with_results(begin);
  }

 private:
  void patiently(const std::function<void()>& work) {
    wait_for_store(work, options_.sweep.store_locked);
  }

  bool is_over() const { return given_.empty() && to_give_.empty(); }

  /// Takes the tasks of earlier calls as its own.
  void adopt() {
    for (TaskFolder& folder : TaskFolder::all(below_)) folders_.push_back(std::move(folder));
    for (const TaskFolder& folder : folders_)
      for (std::size_t i = 0; i < folder.tasks().size(); ++i) {
        given_.adopt(folder, i);
        if (folder.is_merged(i)) take_cannot_be(folder, i);
      }
    if (given_.empty()) return;
    options_.tell(fmt::format("going on with {} tasks of an earlier run", given_.size()));
    settle(given_.take_ended());
    settle(given_.take_lost());
    to_give_.clear();  // plan() finds what they have left, with all else
  }

  /// Makes tasks of the points that are missing and that no task has.
  void plan() {
    known_.elsewhere.clear();
    for (const GivenTask& task : given_.all())
      known_.elsewhere = joined(std::move(known_.elsewhere), task.places());
    const MissingPoints missing = find_missing({});
    done_before_ = sweep_.places() - size_of(joined(known_.elsewhere, missing.places));
    known_.elsewhere.clear();
    if (missing.points == 0 || LeavesOnSignals::leaves()) return;
    const auto points = static_cast<double>(points_per_task());
    const double per_point =
        static_cast<double>(size_of(missing.places)) / static_cast<double>(missing.points);
    const auto places = static_cast<std::size_t>(std::ceil(points * per_point));
    for (Places& part : in_parts(missing.places, places)) to_give_.push_back({std::move(part)});
    options_.tell(
        fmt::format("{} points are to be done, in {} tasks", missing.points, to_give_.size()));
  }

  std::uint64_t points_per_task() const {
    if (execution_->points_per_task > 0)
      return static_cast<std::uint64_t>(execution_->points_per_task);
    const std::optional<double> point_s = estimate_plan(sweep_, store_).point_s;
    const double points =
        execution_->task_time.base() * execution_->cpus / std::max(1e-4, point_s.value_or(1));
    return static_cast<std::uint64_t>(std::clamp(points, 1.0, 1e9));
  }

  MissingPoints find_missing(const Places& only) {
    return missing_points(
        sweep_, store_, known_, only, [this](const auto& work) { patiently(work); },
        [] { return !LeavesOnSignals::leaves(); });
  }

  /// Gives as many tasks as the executor takes.
  void give() {
    const auto now = TaskClock::now();
    if (now < give_again_) return;
    while (given_.size() < executor_->most_tasks()) {
      if (most_in_folder_ == 0 && !to_give_.empty()) most_in_folder_ = executor_->most_in_folder();
      const std::size_t room = std::min(executor_->most_tasks() - given_.size(), most_in_folder_);
      std::vector<TaskToGive> ready;
      for (std::size_t i = to_give_.size(); i > 0 && ready.size() < room; --i) {
        TaskToGive task = std::move(to_give_.front());
        to_give_.pop_front();
        (task.not_before <= now ? ready : later_).push_back(std::move(task));
      }
      to_give_.insert(to_give_.end(), std::make_move_iterator(later_.begin()),
                      std::make_move_iterator(later_.end()));
      later_.clear();
      if (ready.empty() || !give(std::move(ready))) return;
    }
  }

  /// @return false: they were refused, and are given again later
  bool give(std::vector<TaskToGive> tasks) {
    std::vector<Places> places;
    places.reserve(tasks.size());
    for (const TaskToGive& task : tasks) places.push_back(task.places);
    folders_.push_back(TaskFolder::make(below_, execution_.name, std::move(places)));
    const TaskFolder& folder = folders_.back();
    try {
      executor_->start(folder, work_);
    } catch (const ResourceError& error) {
      const fs::path path = folder.path();
      folders_.pop_back();
      fs::remove_all(path);
      const auto now = TaskClock::now();
      const bool never = folders_.empty() && given_.empty();
      if (never || (given_.empty() && now - given_last_ > kLongestRefused)) throw;
      options_.tell(std::string(error.what()) + "\nthey are given again in some seconds");
      give_again_ = now + kGiveAgain;
      to_give_.insert(to_give_.begin(), std::make_move_iterator(tasks.begin()),
                      std::make_move_iterator(tasks.end()));
      return false;
    }
    given_last_ = TaskClock::now();
    for (std::size_t i = 0; i < tasks.size(); ++i) given_.add(folder, i, tasks[i].tries);
    return true;
  }

  void tell_progress() {
    if (!options_.sweep.progress) return;
    std::uint64_t undone = given_.undone();
    for (const TaskToGive& task : to_give_) undone += size_of(task.places);
    const std::size_t running = given_.running();
    SweepTally tally;
    tally.places = sweep_.places();
    tally.done = tally.places - std::min(undone, tally.places);
    tally.simulated = tally.done - std::min(done_before_, tally.done);
    tally.impossible = cannot_be_;
    tally.failed = std::accumulate(failed_.begin(), failed_.end(), std::uint64_t{0});
    tally.tasks_run = running;
    tally.tasks_wait = given_.size() - running + to_give_.size();
    options_.sweep.progress(tally);
  }

  void settle(const std::vector<GivenTask>& over) {
    for (const GivenTask& task : over) settle(task);
  }

  /// Brings the shard of a task that is over into the store, and gives again what it has left.
  void settle(const GivenTask& task) {
    merge_shard(task);
    MissingPoints missing = find_missing(task.places());
    if (LeavesOnSignals::leaves()) return;
    settled_ += missing.settled;
    cannot_be_ += missing.cannot_be;
    task.folder->set_merged(task.number);
    for (std::size_t i = 0; i < failed_.size(); ++i) count_failures(i, missing.failed[i]);
    if (missing.points == 0) return;
    Tries tries = task.tries;
    if (missing.settled > 0) {
      tries = {};
    } else {
      if (tries.fruitless++ == 0) tries.settled_before = settled_;
      if (!is_worth_it(task, missing, tries)) return;
    }
    // Of points that end their task one after the other is found by halves.
    const std::size_t size = size_of(missing.places);
    const auto wait =
        std::chrono::seconds(tries.fruitless == 0 ? 0 : 1 << std::min(3, tries.fruitless - 1));
    for (Places& part : in_parts(missing.places, tries.fruitless < 2 ? size : (size + 1) / 2))
      to_give_.push_front({std::move(part), tries, TaskClock::now() + wait});
  }

  /// Whether points that were given for nothing are given again. @return false: no more
  bool is_worth_it(const GivenTask& task, const MissingPoints& missing, const Tries& tries) {
    if (tries.fruitless < (settled_ == 0 ? kMostBarren : kMostFruitless)) return true;
    const std::string said = task.folder->last_words(task.number);
    if (missing.points == 1 && settled_ > 0) {
      fail(missing.places.front().first, said);
      return false;
    }
    if (settled_ > tries.settled_before) return true;
    stopped_ = fmt::format("tasks end without a result, {} times one after the other{}{}",
                           tries.fruitless, said.empty() ? "" : "; the last one said:\n", said);
    return false;
  }

  void fail(std::size_t place, const std::string& said) {
    PlanCursor at(sweep_, {{place, place + 1}});
    RunRecord record = without_result(at, RunStatus::kFailed,
                                      fmt::format("its task ended {} times without a result{}{}",
                                                  kMostFruitless, said.empty() ? "" : ": ", said));
    record.identity = at.identity();
    RunTimes times = times_now();
    times.exit_code = static_cast<int>(ExitCode::kResource);
    patiently([&] { store_.save(record, times); });
    known_.failed.insert(record.identity);
    ++settled_;
    count_failures(at.case_index(), 1);
  }

  void count_failures(std::size_t index, std::uint64_t failures) {
    failed_[index] += failures;
    const std::string why = sweep_.too_many(failed_[index], index);
    if (!why.empty()) stopped_ = why;
  }

  void take_cannot_be(const TaskFolder& folder, std::size_t task) {
    if (const std::optional<Places> cannot_be = folder.ended(task))
      known_.cannot_be = joined(std::move(known_.cannot_be), *cannot_be);
  }

  void merge_shard(const GivenTask& task) {
    take_cannot_be(*task.folder, task.number);
    const fs::path shard = task.folder->shard(task.number);
    try {
      const ResultStore from = ResultStore::open_read_only(shard);
      Statement failures =
          from.database()->prepare("SELECT identity FROM points WHERE status = 'failed'");
      while (failures.step()) known_.failed.insert(failures.text(0));
    } catch (const StoreError& error) {
      if (error.fault() == StoreFault::kUnreachable) return;  // nothing was ever committed to it
    }
    MergeReport report;
    merge(store_, shard, report, [this](const auto& work) { patiently(work); });
    for (const std::string& damage : report.damaged)
      options_.tell("damaged: " + damage + "; what it has lost is done again");
    damaged_ = damaged_ || !report.damaged.empty();
  }

  void end_all() {
    given_.end_all();
    for (const GivenTask& task : given_.all()) merge_shard(task);
  }

  TaskRunEnd without_results() const {
    TaskRunEnd end;
    end.tasks = given_.size();
    end.tasks_to_give = to_give_.size();
    std::set<std::string> ways;
    for (const GivenTask& task : given_.all()) ways.insert(executor_->how_to_end(*task.folder));
    end.how_to_end.assign(ways.begin(), ways.end());
    return end;
  }

  TaskRunEnd with_results(TaskClock::time_point begin) {
    SweepOptions options = options_.sweep;
    options.progress = nullptr;
    options.simulates = [this](std::uint64_t place) { return has_place(known_.cannot_be, place); };
    TaskRunEnd end;
    end.results = run_sweep(sweep_, store_, options);
    SweepResults& results = *end.results;
    results.simulated = settled_ - cannot_be_;
    results.from_store -= std::min(results.from_store, results.simulated);
    results.stopped = stopped_;
    results.seconds = std::chrono::duration<double>(TaskClock::now() - begin).count();
    end.shards_are_merged = stopped_.empty() && !damaged_;
    return end;
  }

  const Sweep& sweep_;
  ResultStore& store_;
  const config::OneOf<ExecutionConfig>& execution_;
  const TaskRunOptions& options_;
  std::unique_ptr<TaskExecutor> executor_;
  fs::path below_;
  AwaitsAlone alone_;
  TaskWork work_;
  std::deque<TaskFolder> folders_;  ///< folders that given tasks point to
  std::deque<TaskToGive> to_give_;
  std::vector<TaskToGive> later_;
  GivenTasks given_;
  KnownPoints known_;
  std::uint64_t done_before_ = 0;  ///< places that no task was needed for
  std::uint64_t settled_ = 0;      ///< points that tasks of this run have settled
  std::uint64_t cannot_be_ = 0;    ///< points of those that cannot be
  std::vector<std::uint64_t> failed_;
  std::size_t most_in_folder_ = 0;  ///< 0: not asked yet
  TaskClock::time_point give_again_, given_last_;
  bool damaged_ = false;
  std::string stopped_;
};

}  // namespace

std::string tasks_of(const std::string& store_file) { return store_file + ".tasks"; }

TaskRunEnd run_tasks(const Sweep& sweep, ResultStore& store,
                     const config::OneOf<ExecutionConfig>& execution,
                     const TaskRunOptions& options) {
  return TaskRun(sweep, store, execution, options).run();
}

void drop_tasks(const std::string& store_file) {
  std::error_code none;
  fs::remove_all(tasks_of(store_file), none);
}

}  // namespace orrery
