// SPDX-License-Identifier: Apache-2.0
#include <nlohmann/json.hpp>

#include "sim/app/experiments/file_kind.h"
#include "sim/app/questions/explain.h"
#include "sim/app/questions/explain_parts.h"
#include "sim/app/questions/question.h"

namespace orrery {
namespace {

struct ExplainQuestion {
  std::string file;
  std::vector<std::string> set;
  bool config = false;  ///< every value with its origin, too

  void take(Options& options) {
    options.positional("EXPERIMENT", file, "experiment file (YAML)");
    options.set(set);
    options.flag("--config", config, "every value with its origin, too");
  }

  Answer answer() const {
    expect_kind(file, "experiment");
    const LoadedExperiment loaded = load_experiment(file, set);
    const nlohmann::ordered_json explanation = explain(loaded);
    Answer answer = explanation_parts(explanation, config);
    answer.json = explanation;
    answer.warnings = loaded.warnings;
    return answer;
  }
};

const RegisterQuestion<ExplainQuestion> registered_explain(
    "explain", "what limits a run, and which inputs had no effect");

}  // namespace
}  // namespace orrery
