// SPDX-License-Identifier: Apache-2.0
#include <iostream>
#include <nlohmann/json.hpp>

#include "sim/app/cli/explain_text.h"
#include "sim/app/cli/verb.h"
#include "sim/app/experiments/file_kind.h"
#include "sim/app/questions/explain.h"

namespace orrery {
namespace {

struct ExplainArguments {
  std::string file;
  std::vector<std::string> set;
  bool config = false;  ///< every value with its origin, too
  bool json = false;

  void take(Options& options);
  ExitCode run() const;
};

}  // namespace

void ExplainArguments::take(Options& options) {
  options.positional("EXPERIMENT", file, "experiment file (YAML)");
  options.set(set);
  options.flag("--config", config, "every value with its origin, too");
  options.json(json);
}

ExitCode ExplainArguments::run() const {
  expect_kind(file, "experiment");
  const LoadedExperiment loaded = load_experiment(file, set);
  std::cerr << loaded.warnings;
  const nlohmann::ordered_json explanation = explain(loaded);
  if (json) {
    std::cout << explanation.dump(2) << "\n";
  } else {
    print_explanation(explanation, config, std::cout);
  }
  return ExitCode::kOk;
}

namespace {

const RegisterVerb<ExplainArguments> registered_explain(
    "explain", "what limits a run, and which inputs had no effect");

}  // namespace

}  // namespace orrery
