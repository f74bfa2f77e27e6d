// SPDX-License-Identifier: Apache-2.0
#include <iostream>
#include <nlohmann/json.hpp>
#include <string>

#include "sim/app/cli/sweep_running.h"
#include "sim/app/experiments/files/file_kind.h"
#include "sim/app/sweeps/search/proposal.h"
#include "sim/app/sweeps/search/told_points.h"

namespace orrery {
namespace {

struct SweepAskArguments {
  std::string file, db;
  int count = 0;  ///< 0: all that the generation has
  bool json = false;

  void take(Options& options) {
    options.positional("SWEEP", file, "sweep file (YAML) with objectives, and what `search` says");
    options.option("--db", db, "the store (SQLite); default: <name of the sweep>.db");
    options.number("--count", count, "points to propose at most; default: the whole generation", 1,
                   1000000);
    options.json(json);
    options.examples({"sweep ask configs/sweeps/search_decode.yaml --db decode.db --count 8"});
  }

  ExitCode run() const {
    expect_kind(file, "sweep");
    const std::vector<Sweep> levels = sweeps_by_fidelity(load_sweep(file));
    const Sweep& sweep = levels.back();
    ResultStore store = ResultStore::open(store_of(sweep, db));
    const std::size_t most = count > 0 ? static_cast<std::size_t>(count) : ~std::size_t{0};
    const Proposals proposals = propose(levels, sweep.config.search, store, most);
    for (const auto& point : proposals.points) std::cout << point.dump() << "\n";
    if (proposals.at_end)
      std::cerr << "the search is at its end: " << proposals.evaluated << " points evaluated\n";
    return ExitCode::kOk;
  }
};

const RegisterVerb<SweepAskArguments> registered_sweep_ask(
    "sweep ask", "print the points that a search wants evaluated next, a line of JSON each");

struct SweepTellArguments {
  SweepRunning running;
  bool json = false;

  void take(Options& options) {
    running.take(options);
    options.json(json);
    options.examples(
        {"sweep tell configs/sweeps/search_decode.yaml --db decode.db <<< '{\"parameters\": "
         "{\"batch.micro\": 40}}'",
         "sweep ask SWEEP.yaml --db s.db | sweep tell SWEEP.yaml --db s.db"});
  }

  ExitCode run() const {
    const Sweep sweep = running.load();
    ResultStore store = running.open_store(sweep);
    const SweepOptions options = running.options();
    ToldPoints points(sweep, store, "standard input");
    bool failed = false;
    for (std::string line; std::getline(std::cin, line);) {
      if (line.find_first_not_of(" \t\r") == std::string::npos) line = "[]";
      for (const nlohmann::ordered_json& answer : points.take(line, options)) {
        failed = failed || answer["status"] == "failed";
        std::cout << answer.dump() << "\n";
      }
      std::cout.flush();  // whoever asks waits for it
    }
    return failed ? ExitCode::kPartial : ExitCode::kOk;
  }
};

const RegisterVerb<SweepTellArguments> registered_sweep_tell(
    "sweep tell",
    "simulate the points whose parameters stand in lines of JSON, or save what others found");

}  // namespace
}  // namespace orrery
