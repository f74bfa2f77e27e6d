// SPDX-License-Identifier: Apache-2.0
#include "sim/app/cli/execution_arguments.h"

#include <iostream>
#include <nlohmann/json.hpp>
#include <utility>

#include "sim/app/sweeps/executors/child_program.h"
#include "sim/app/sweeps/executors/task_executor.h"
#include "sim/app/sweeps/run/run_tasks.h"

namespace orrery {
namespace {

/// Says to people what goes on without this process.
void tell_end(const TaskRunEnd& end, const Sweep& sweep, const std::string& store_file) {
  std::cerr << end.tasks << " tasks wait or run without this process";
  if (end.tasks_to_give > 0) std::cerr << ", " << end.tasks_to_give << " are still to be given";
  std::cerr << "\ngo on: orrery sweep resume " << shell_words({sweep.path, "--db", store_file})
            << "   (with the same options)\n"
            << "look:  orrery sweep merge " << shell_words({store_file}) << " "
            << shell_words({tasks_of(store_file)}) << "/*/*.db\n";
  for (const std::string& way : end.how_to_end) std::cerr << "end:   " << way << "\n";
}

}  // namespace

void ExecutionArguments::take(Options& options) {
  std::vector<std::string> names = ExecutionConfig::choices().names();
  options.choice("--executor", executor,
                 "where points run; default: execution: of the sweep, or local", names);
  options.option("--launcher", launcher,
                 "shell command of a task, of --executor command: 'ssh node{slot} {quoted_work}'");
  options.repeatable("--execution", over,
                     "key=value, laid over execution: of the sweep; repeatable");
  options.flag("--no-wait", no_wait, "leave once tasks are given: for executors with a queue");
}

std::optional<SweepResults> ExecutionArguments::run(
    const Sweep& sweep, const std::string& store_file, std::optional<ResultStore>& store,
    const SweepOptions& options, const std::string& where, ExitCode& code) const {
  std::vector<std::string> settings = over;
  std::string name = executor;
  if (!launcher.empty()) {
    settings.push_back("launcher=" + nlohmann::json(launcher).dump());
    if (name.empty()) name = "command";
  }
  const auto execution = execution_of(sweep.node.find("execution"), name, settings);
  const std::unique_ptr<TaskExecutor> tasks = execution->make();
  if (no_wait && (tasks == nullptr || !tasks->has_queue()))
    throw UsageError("--no-wait needs an executor with a queue; '" + execution.name +
                     "' runs points as long as it is awaited");
  if (tasks == nullptr) return run_sweep(sweep, *store, options);
  TaskRunOptions run;
  run.sweep = options;
  run.sweep_file = sweep.path;
  run.store_file = store_file;
  run.where = where;
  run.wait = !no_wait;
  run.tell = [](const std::string& line) { std::cerr << line << "\n"; };
  TaskRunEnd end = run_tasks(sweep, *store, execution, run);
  if (!end.results) {
    tell_end(end, sweep, store_file);
    code = no_wait ? ExitCode::kOk : ExitCode::kPartial;
    return std::nullopt;
  }
  store.reset();
  if (end.shards_are_merged) drop_tasks(store_file);
  return std::move(end.results);
}

}  // namespace orrery
