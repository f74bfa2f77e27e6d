// SPDX-License-Identifier: Apache-2.0
#include <nlohmann/json.hpp>

#include "sim/app/experiments/core/experiment.h"
#include "sim/app/experiments/files/file_kind.h"
#include "sim/app/experiments/steps/plan_check.h"
#include "sim/config/output.h"

namespace orrery {
namespace {

/// A file that extends another experiment has a system, but need not repeat what it is.
int certainty(const config::Node& own) {
  if (own.find("experiment") != nullptr) return 50;
  const config::Node* base = own.find("extends");
  const bool of_library =
      base != nullptr && base->is_scalar() && !config::Library::is_path(base->text());
  const bool system = own.find("system") != nullptr && own.find("accelerator") == nullptr;
  return system && !of_library ? 20 : 0;
}

/// Also builds the model and the network and checks that the plan is possible.
std::string check(const std::string& file) {
  const LoadedExperiment loaded = load_experiment(file, {});
  std::string warnings = loaded.warnings + check_plan(loaded);
  check_network(loaded);
  return warnings;
}

const RegisterFileKind registered_experiment_file(
    "experiment", {"an experiment", "run", {"experiment"}, certainty, check, {}, [] {
                     return config::json_schema(Experiment::choices(), "experiment");
                   }});

}  // namespace
}  // namespace orrery
