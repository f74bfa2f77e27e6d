// SPDX-License-Identifier: Apache-2.0
#include <iostream>
#include <optional>

#include "sim/app/cli/answer_text.h"
#include "sim/app/cli/progress.h"
#include "sim/app/cli/verb.h"
#include "sim/app/experiments/file_kind.h"
#include "sim/app/questions/search_report.h"
#include "sim/app/sweeps/local_workers.h"
#include "sim/app/sweeps/search/run_search.h"

namespace orrery {
namespace {

struct SweepSearchArguments {
  std::string file, db;
  int jobs = 0;  ///< 0: one for each processor
  int seed = -1, evaluations = 0;
  bool json = false;

  void take(Options& options);
  ExitCode run() const;
};

void SweepSearchArguments::take(Options& options) {
  options.positional("SWEEP", file, "sweep file (YAML) with objectives, and what `search` says");
  options.option("--db", db, "the store (SQLite); default: <name of the sweep>.db");
  options.number("--jobs", jobs, "processes that simulate points; default: one for each processor",
                 1, 4096);
  options.number("--seed", seed, "another seed than that of the file", 0, 1000000000);
  options.number("--evaluations", evaluations, "other evaluations than those of the file", 1,
                 1000000000);
  options.json(json);
  options.examples({"sweep search configs/sweeps/search_decode.yaml --db decode.db",
                    "sweep search configs/sweeps/search_decode.yaml --db decode.db --seed 2"});
}

ExitCode SweepSearchArguments::run() const {
  expect_kind(file, "sweep");
  const std::vector<Sweep> levels = sweeps_by_fidelity(load_sweep(file));
  const Sweep& sweep = levels.back();
  SearchConfig config = sweep.config.search;
  if (seed >= 0) config.seed = seed;
  if (evaluations > 0) config.evaluations = evaluations;
  const std::string path = db.empty() ? sweep.config.name + ".db" : db;
  SweepOptions options;
  options.jobs = jobs > 0 ? static_cast<std::size_t>(jobs) : available_processors();
  options.store_locked = [](const std::string& what) {
    std::cerr << what << "; waiting up to a minute\n";
  };
  std::optional<ResultStore> store;
  wait_for_store([&] { store.emplace(ResultStore::open(path)); }, options.store_locked);
  Progress progress("evaluations", static_cast<std::size_t>(config.evaluations));
  options.progress = [&progress](std::uint64_t done, const std::string& name) {
    progress.reach(static_cast<std::size_t>(done), name);
  };
  const SearchResults results = run_search(levels, config, *store, options);
  if (results.evaluated.empty() && results.stopped.empty())
    throw UsageError("the rules of this sweep exclude all of its points");
  if (json) std::cerr << counts_of(results, sweep) << "\n";
  print_answer(search_report(sweep, config, results, {file, path}), json);
  return results.failed > 0 || !results.stopped.empty() ? ExitCode::kPartial : ExitCode::kOk;
}

const RegisterVerb<SweepSearchArguments> registered_sweep_search(
    "sweep search", "look for the points that are best in the objectives of a sweep");

}  // namespace

}  // namespace orrery
