// SPDX-License-Identifier: Apache-2.0
#include <iostream>
#include <optional>
#include <set>

#include "sim/app/cli/answer_text.h"
#include "sim/app/cli/execution_arguments.h"
#include "sim/app/cli/sweep_running.h"
#include "sim/app/cli/verb.h"
#include "sim/app/questions/sweep_report.h"
#include "sim/app/sweeps/plan/check_sweep.h"

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

struct SweepArguments {
  SweepRunning running;
  ExecutionArguments execution;
  bool json = false;

  void take(Options& options) {
    running.take(options);
    execution.take(options);
    options.option("--where", running.where,
                   "condition that points must keep, beside those of the file");
    options.columns(running.columns);
    options.json(json);
  }

  ExitCode run() const {
    const Sweep sweep = running.load();
    ExitCode code = ExitCode::kOk;
    std::optional<SweepResults> found;
    running.with_store(sweep, [&](std::optional<ResultStore>& store, const SweepOptions& options) {
      found = execution.run(sweep, running.store_of(sweep), store, options, running.where, code);
    });
    if (!found) return code;
    const SweepResults& results = *found;
    require_any(sweep, results);
    if (json) std::cerr << counts_of(results) << "\n";
    const SweepFiles files = {running.file, running.store_of(sweep)};
    print_answer(json ? sweep_points(sweep, results, files) : sweep_report(sweep, results, files),
                 json);
    return exit_code_of(results);
  }
};

const VerbRegistry::Register registered_sweep("sweep", "design-space exploration into one store",
                                              nullptr);
const RegisterVerb<SweepArguments> registered_sweep_run(
    "sweep run", "simulate the points that the store does not have");
const RegisterVerb<SweepArguments> registered_sweep_resume(
    "sweep resume", "the same as sweep run: go on with what is missing");

}  // namespace
}  // namespace orrery
