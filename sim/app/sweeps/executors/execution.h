// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "sim/config/node.h"
#include "sim/config/registered.h"
#include "sim/config/schema.h"
#include "sim/units/units.h"

namespace orrery {

class TaskExecutor;

/// `execution:` of a sweep file: where points run, and what all executors take. An executor is a
/// file with a struct that derives from it and adds its own keys, and
/// `const config::Registered<ExecutionConfig>::Add<Slurm>`.
struct ExecutionConfig {
  std::string executor;
  std::int64_t points_per_task = 0;  ///< 0: so many as take task_time
  Seconds task_time{300};            ///< time that a task is to take
  int cpus = 1;                      ///< processes of a task that simulate
  Seconds ask_every{15};             ///< time between two questions to the executor
  Seconds silent_after{
      120};  ///< a task that is said to run and has been silent for so long is gone

  ExecutionConfig() = default;
  virtual ~ExecutionConfig() = default;
  ExecutionConfig(const ExecutionConfig&) = default;
  ExecutionConfig& operator=(const ExecutionConfig&) = default;

  /// Null: this process runs the points in workers of its own.
  virtual std::unique_ptr<TaskExecutor> make() const = 0;

  static const config::Choices& choices() {
    return config::Registered<ExecutionConfig>::choices("executor", "local");
  }
  static const ExecutionConfig* view(const std::string& name, void* object) {
    return config::Registered<ExecutionConfig>::view(name, object);
  }
};

template <class T>
config::Schema<T> execution_schema(const std::string& name, const std::string& help) {
  using E = ExecutionConfig;
  config::Schema<T> schema(name, help);
  schema.optional("executor", static_cast<std::string T::*>(&E::executor), "where points run")
      .optional("points_per_task", static_cast<std::int64_t T::*>(&E::points_per_task),
                "points of a task; without it so many as take task_time", config::between(1, 1e9))
      .optional("task_time", static_cast<Seconds T::*>(&E::task_time),
                "time that a task is to take", config::between(Seconds(1), Seconds(1e6)))
      .optional("cpus", static_cast<int T::*>(&E::cpus), "processes of a task that simulate",
                config::between(1, 4096))
      .optional("ask_every", static_cast<Seconds T::*>(&E::ask_every),
                "time between two questions to the executor",
                config::between(Seconds(0.1), Seconds(3600)))
      .optional("silent_after", static_cast<Seconds T::*>(&E::silent_after),
                "a task that is said to run and has been silent for so long is gone",
                config::between(Seconds(10), Seconds(1e6)))
      .elsewhere(config::Registered<E>::with_key);
  return schema;
}

/// How a sweep is to run: `execution:` of its file, with what the command line lays over it.
/// @param written `execution:` of the file; null: there is none
/// @param executor the one of the command line, which drops what the file says of another; empty:
/// that of the file
/// @param over texts "key=value"
/// @throws config::ConfigError
config::OneOf<ExecutionConfig> execution_of(const config::Node* written,
                                            const std::string& executor,
                                            const std::vector<std::string>& over);

}  // namespace orrery
