// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "sim/app/sweeps/executors/task_folder.h"

namespace orrery {

/// What an executor says of a task that is not over. It is never taken for what a task has done.
enum class TaskState { kWaits, kRuns };

/// Tasks by the name of their folder and their number.
using TaskStates = std::map<std::pair<std::string, std::size_t>, TaskState>;

struct TaskWork {
  std::string program;     ///< this program, an absolute path
  std::string sweep;       ///< sweep file as the user named it, which results say
  std::string from;        ///< absolute path of the folder that the user named it in
  int cpus = 1;            ///< processes of a task that simulate
  std::string where = {};  ///< a condition beside those of the sweep file; empty: none

  /// Words of the command of one task, but for the places and the shard.
  std::vector<std::string> words(const std::string& places, const std::string& shard) const {
    std::vector<std::string> all = {
        program,  "sweep", "work", sweep, places, "--shard", shard, "--jobs", std::to_string(cpus),
        "--from", from};
    if (!where.empty()) all.insert(all.end(), {"--where", where});
    return all;
  }
};

/// Has tasks run elsewhere: each runs `orrery sweep work SWEEP PLACES --shard FILE`. What became of
/// their points the shards say.
class TaskExecutor {
 public:
  TaskExecutor() = default;
  virtual ~TaskExecutor() = default;
  TaskExecutor(const TaskExecutor&) = delete;
  TaskExecutor& operator=(const TaskExecutor&) = delete;

  /// Most tasks that are given and not over.
  virtual std::size_t most_tasks() const = 0;
  virtual std::size_t most_in_folder() const { return most_tasks(); }
  /// Whether what was given runs, and begins, without this process.
  virtual bool has_queue() const = 0;
  /// Gives all tasks of a folder. @throws ResourceError with the words of who refuses them
  virtual void start(const TaskFolder& folder, const TaskWork& work) = 0;
  /// Those tasks of these folders that wait or run. None: it cannot be told at present.
  virtual std::optional<TaskStates> ask(const std::vector<const TaskFolder*>& folders) = 0;
  /// Ends a task that ask() has named.
  virtual void end(const TaskFolder& folder, std::size_t task) = 0;
  /// How a user ends what goes on in a folder: "scancel --name=slurm-1a2b".
  virtual std::string how_to_end(const TaskFolder& folder) const = 0;
};

}  // namespace orrery
