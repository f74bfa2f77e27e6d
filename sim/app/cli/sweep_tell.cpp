// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <iostream>
#include <nlohmann/json.hpp>
#include <optional>

#include "sim/app/cli/verb.h"
#include "sim/app/experiments/file_kind.h"
#include "sim/app/sweeps/local_workers.h"
#include "sim/app/sweeps/search/told_points.h"

namespace orrery {
namespace {

struct SweepTellArguments {
  std::string file, db;
  int jobs = 0;  ///< 0: one for each processor
  bool json = false;

  void take(Options& options) {
    options.positional("SWEEP", file, "sweep file (YAML)");
    options.option("--db", db, "the store (SQLite); default: <name of the sweep>.db");
    options.number("--jobs", jobs,
                   "processes that simulate points; default: one for each processor", 1, 4096);
    options.json(json);
    options.examples(
        {"sweep tell configs/sweeps/search_decode.yaml --db decode.db <<< '{\"parameters\": "
         "{\"batch.micro\": 40}}'",
         "sweep ask SWEEP.yaml --db s.db | sweep tell SWEEP.yaml --db s.db"});
  }

  ExitCode run() const {
    expect_kind(file, "sweep");
    const Sweep sweep = load_sweep(file);
    SweepOptions options;
    options.jobs = jobs > 0 ? static_cast<std::size_t>(jobs) : available_processors();
    options.store_locked = [](const std::string& what) {
      std::cerr << what << "; waiting up to a minute\n";
    };
    std::optional<ResultStore> store;
    wait_for_store(
        [&] { store.emplace(ResultStore::open(db.empty() ? sweep.config.name + ".db" : db)); },
        options.store_locked);
    ToldPoints points(sweep, *store, "standard input");
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
