// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "sim/app/sweeps/executors/execution.h"
#include "sim/app/sweeps/run/run_sweep.h"

namespace orrery {

struct TaskRunOptions {
  SweepOptions sweep;      ///< how the store is waited for, and who is told of progress
  std::string sweep_file;  ///< files as a user named them
  std::string store_file;
  std::string where = {};  ///< a condition beside those of the file; empty: none
  bool wait = true;        ///< until all is done; else tasks are given, and no more
  std::function<void(const std::string&)> tell;  ///< called with lines for people
};

struct TaskRunEnd {
  /// What the sweep found. None: tasks go on without this process.
  std::optional<SweepResults> results;
  std::size_t tasks = 0;                ///< tasks that wait or run
  std::size_t tasks_to_give = 0;        ///< tasks that nobody has
  std::vector<std::string> how_to_end;  ///< how a user ends those that wait or run
  bool shards_are_merged = false;       ///< nothing in the folders of tasks is needed
};

/// Where the tasks of a store are: "sweep.db.tasks".
std::string tasks_of(const std::string& store_file);

/// Has the points that the store does not have run as tasks elsewhere, each writing a shard, and
/// brings the shards into the store. What became of a point its shard says, never the executor: a
/// task that is over and has not done its points is given again with those that are missing, and
/// one that has is done, whatever is said of it. Tasks of an earlier call are gone on with.
/// Killed at any moment, it is called again.
/// @throws ConfigError, StoreError, DeterminismError, ResourceError
TaskRunEnd run_tasks(const Sweep& sweep, ResultStore& store,
                     const config::OneOf<ExecutionConfig>& execution,
                     const TaskRunOptions& options);

/// Removes what an earlier call has left once it is merged and the store is closed.
void drop_tasks(const std::string& store_file);

}  // namespace orrery
