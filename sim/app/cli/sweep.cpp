// SPDX-License-Identifier: Apache-2.0
#include <iostream>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <utility>

#include "sim/app/cli/answer_text.h"
#include "sim/app/cli/sweep_running.h"
#include "sim/app/questions/sweep_report.h"
#include "sim/app/sweeps/executors/child_program.h"
#include "sim/app/sweeps/executors/task_executor.h"
#include "sim/app/sweeps/plan/check_sweep.h"
#include "sim/app/sweeps/run/run_tasks.h"

namespace orrery {
namespace {

/// @throws config::ConfigError, UsageError where no point at all can be: then the file is wrong,
/// not a point
void require_any(const Sweep& sweep, const SweepResults& results) {
  if (results.points == 0) refuse_rules(sweep);
  if (results.impossible < results.points) return;
  std::set<std::string> reasons;
  for (const PointResult& result : results.kept) reasons.insert(result.record.reason);
  std::string text = "no point of this sweep can be";
  for (const std::string& reason : reasons) text += "\n  " + reason;
  throw UsageError(text);
}

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

struct SweepArguments {
  SweepRunning running;
  std::string executor, launcher;
  std::vector<std::string> over;  ///< settings "key=value" of the execution
  bool no_wait = false, json = false;

  void take(Options& options) {
    running.take(options);
    options.choice("--executor", executor,
                   "where points run; default: execution: of the sweep, or local",
                   ExecutionConfig::choices().names());
    options.option(
        "--launcher", launcher,
        "shell command of a task, of --executor command: 'ssh node{slot} {quoted_work}'");
    options.repeatable("--execution", over,
                       "key=value, laid over execution: of the sweep; repeatable");
    options.flag("--no-wait", no_wait, "leave once tasks are given: for executors with a queue");
    take_where(options, running.where);
    options.columns(running.columns);
    options.json(json);
  }

  ExitCode run() const {
    const Sweep sweep = running.load();
    std::optional<SweepResults> found;
    running.with_store(sweep, [&](std::optional<ResultStore>& store, const SweepOptions& options) {
      found = run_points(sweep, store, options);
    });
    if (!found) return no_wait ? ExitCode::kOk : ExitCode::kPartial;
    const SweepResults& results = *found;
    require_any(sweep, results);
    if (json) std::cerr << counts_of(results) << "\n";
    const SweepFiles files = {running.file, running.store_of(sweep)};
    print_answer(json ? sweep_points(sweep, results, files) : sweep_report(sweep, results, files),
                 json);
    return exit_code_of(results);
  }

 private:
  /// Runs the points where they are to run. None: tasks go on without this process, which has said
  /// how to go on with them.
  /// @param store closed after it where all is merged
  std::optional<SweepResults> run_points(const Sweep& sweep, std::optional<ResultStore>& store,
                                         const SweepOptions& options) const {
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
    const TaskRunOptions run = {.sweep = options,
                                .sweep_file = sweep.path,
                                .store_file = running.store_of(sweep),
                                .where = running.where,
                                .wait = !no_wait,
                                .tell = [](const std::string& line) { std::cerr << line << "\n"; }};
    TaskRunEnd end = run_tasks(sweep, *store, execution, run);
    if (!end.results) {
      tell_end(end, sweep, run.store_file);
      return std::nullopt;
    }
    store.reset();
    if (end.shards_are_merged) drop_tasks(run.store_file);
    return std::move(end.results);
  }
};

const VerbRegistry::Register registered_sweep("sweep", "design-space exploration into one store",
                                              {});
const RegisterVerb<SweepArguments> registered_sweep_run(
    "sweep run", "simulate the points that the store does not have");
const RegisterVerb<SweepArguments> registered_sweep_resume(
    "sweep resume", "the same as sweep run: go on with what is missing");

}  // namespace
}  // namespace orrery
