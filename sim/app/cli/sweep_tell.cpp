// SPDX-License-Identifier: Apache-2.0
#include <iostream>
#include <nlohmann/json.hpp>
#include <string>

#include "sim/app/cli/sweep_running.h"
#include "sim/app/cli/verb.h"
#include "sim/app/sweeps/search/told_points.h"

namespace orrery {
namespace {

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
