// SPDX-License-Identifier: Apache-2.0
#include <nlohmann/json.hpp>

#include "sim/app/experiments/files/file_kind.h"
#include "sim/app/questions/base/question.h"
#include "sim/app/questions/explain/explain.h"
#include "sim/app/questions/explain/explain_parts.h"
#include "sim/app/questions/explain/switches.h"

namespace orrery {
namespace {

struct ExplainQuestion {
  std::string file;
  std::vector<std::string> set;
  bool config = false;    ///< every value with its origin, too
  bool switches = false;  ///< the step with every other value of every switch, too

  void take(Options& options) {
    options.positional("EXPERIMENT", file, "experiment file (YAML)");
    options.set(set);
    options.flag("--switches", switches,
                 "what every switch of the step's software costs or saves: a replay each");
    options.flag("--config", config, "every value with its origin, too");
  }

  Answer answer() const {
    expect_kind(file, "experiment");
    const LoadedExperiment loaded = load_experiment(file, set);
    nlohmann::ordered_json explanation = explain(loaded);
    const auto& time = explanation.at("time");
    if (switches && !time.is_null())
      explanation["switches"] = switch_changes(loaded, time.at("value"));
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
