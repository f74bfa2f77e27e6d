// SPDX-License-Identifier: Apache-2.0
#include <iostream>
#include <nlohmann/json.hpp>

#include "sim/app/cli/commands.h"
#include "sim/app/cli/explain_text.h"
#include "sim/app/experiments/file_kind.h"
#include "sim/app/questions/explain.h"

namespace orrery {

ExitCode explain_command(const ExplainArguments& arguments) {
  expect_kind(arguments.file, FileKind::kExperiment);
  const LoadedExperiment loaded = load_experiment(arguments.file, arguments.set);
  std::cerr << loaded.warnings;
  const nlohmann::ordered_json explanation = explain(loaded);
  if (arguments.json) {
    std::cout << explanation.dump(2) << "\n";
  } else {
    print_explanation(explanation, arguments.config, std::cout);
  }
  return ExitCode::kOk;
}

}  // namespace orrery
