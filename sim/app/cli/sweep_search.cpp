// SPDX-License-Identifier: Apache-2.0
#include "sim/app/sweeps/search/run_search.h"

#include <iostream>

#include "sim/app/cli/answer_text.h"
#include "sim/app/cli/sweep_running.h"
#include "sim/app/questions/sweep_report.h"
#include "sim/app/sweeps/plan/check_sweep.h"

namespace orrery {
namespace {

struct SweepSearchArguments {
  SweepRunning running;
  int seed = -1, evaluations = 0;
  bool json = false;

  void take(Options& options) {
    running.take(options);
    options.number("--seed", seed, "another seed than that of the file", 0, 1000000000);
    options.number("--evaluations", evaluations, "other evaluations than those of the file", 1,
                   1000000000);
    options.json(json);
    options.examples({"sweep search configs/sweeps/search_decode.yaml --db decode.db",
                      "sweep search configs/sweeps/search_decode.yaml --db decode.db --seed 2"});
  }

  ExitCode run() const {
    const std::vector<Sweep> levels = sweeps_by_fidelity(running.load());
    const Sweep& sweep = levels.back();
    SearchConfig config = sweep.config.search;
    if (seed >= 0) config.seed = seed;
    if (evaluations > 0) config.evaluations = evaluations;
    search_objectives(sweep);  // or there is nothing to open a store for
    SearchResults results;
    running.with_store(sweep, [&](std::optional<ResultStore>& store, const SweepOptions& options) {
      results = run_search(levels, config, *store, options);
    });
    if (results.evaluated.empty() && results.stopped.empty()) refuse_rules(sweep);
    if (json) std::cerr << counts_of(results, sweep) << "\n";
    const SweepFiles files = {running.file, running.store_of(sweep)};
    print_answer(search_report(sweep, config, results, files), json);
    return results.failed > 0 || !results.stopped.empty() ? ExitCode::kPartial : ExitCode::kOk;
  }
};

const RegisterVerb<SweepSearchArguments> registered_sweep_search(
    "sweep search", "look for the points that are best in the objectives of a sweep");

}  // namespace
}  // namespace orrery
