// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "sim/app/sweeps/executors/execution.h"
#include "sim/app/sweeps/executors/task_executor.h"
#include "sim/app/sweeps/executors/task_folder.h"

namespace orrery {

/// How often points were given without any coming back.
struct Tries {
  int fruitless = 0;
  std::uint64_t settled_before = 0;  ///< points of the whole run that were settled at the first
};

/// A task that an executor has, as far as is known.
struct GivenTask {
  const TaskFolder* folder = nullptr;
  std::size_t number = 0;
  Tries tries = {};
  TaskState state = TaskState::kWaits;
  std::string sign = {};  ///< last sign of life
  /// When it was last seen to change.
  std::chrono::steady_clock::time_point heard = std::chrono::steady_clock::now();

  std::pair<std::string, std::size_t> key() const { return {folder->name(), number}; }
  const Places& places() const { return folder->tasks()[number]; }
};

/// The tasks that are given and not over. That one is over it says itself; where it cannot, its
/// executor no longer has it, or it is silent while the executor believes that it runs.
class GivenTasks {
 public:
  GivenTasks(TaskExecutor& executor, const config::OneOf<ExecutionConfig>& execution)
      : executor_(executor), execution_(execution) {}

  void add(const TaskFolder& folder, std::size_t number, const Tries& tries = {}) {
    given_.push_back({&folder, number, tries});
  }
  /// One that an earlier process gave. Where its shard was merged it is not given any longer, but
  /// the executor may still have it.
  void adopt(const TaskFolder& folder, std::size_t number);
  const std::vector<GivenTask>& all() const { return given_; }
  std::size_t size() const { return given_.size(); }
  bool empty() const { return given_.empty(); }
  /// Tasks that were seen to work.
  std::size_t running() const;
  /// Places that they have not done, as they say.
  std::uint64_t undone() const;

  /// Those that say that they are through. They are no longer given.
  std::vector<GivenTask> take_ended();
  /// Asks the executor, and takes those that are over and have not said so.
  std::vector<GivenTask> take_lost();
  /// The same where it is time to ask.
  std::vector<GivenTask> take_lost_now_and_then();

  void end_all();
  /// Ends what the executor believes to run although it is done.
  void clear_out();

 private:
  using TaskClock = std::chrono::steady_clock;

  bool is_ours(const GivenTask& task) const { return task.folder->executor() == execution_.name; }
  bool is_lost(GivenTask& task, const TaskStates* states);
  std::vector<const TaskFolder*> folders_in_use() const;
  template <class IsOver>
  std::vector<GivenTask> take(const IsOver& is_over);

  TaskExecutor& executor_;
  const config::OneOf<ExecutionConfig>& execution_;
  std::vector<GivenTask> given_;
  std::vector<GivenTask> lingering_;  ///< tasks that are through, which the executor may still have
  TaskClock::time_point asked_;
};

}  // namespace orrery
