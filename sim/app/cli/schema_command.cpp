// SPDX-License-Identifier: Apache-2.0
#include <iostream>
#include <nlohmann/json.hpp>

#include "models/collectives/user_algorithm.h"
#include "sim/app/cli/verb.h"
#include "sim/app/experiments/experiment.h"
#include "sim/app/sweeps/sweep_config.h"
#include "sim/config/output.h"
#include "sim/machine/calibration.h"
#include "validation/checks/published.h"
#include "workloads/llm/model_config.h"
#include "workloads/llm/training_software.h"

namespace orrery {
namespace {

struct SchemaArguments {
  std::string kind = "experiment";
  bool json = true;  ///< there is no other form

  void take(Options& options);
  ExitCode run() const;
};

constexpr const char* kExperiment = "experiment";

const std::vector<std::pair<std::string, const config::Record*>>& records() {
  static const std::vector<std::pair<std::string, const config::Record*>> all = {
      {"sweep", &SweepConfig::schema().record()},
      {"published", &PublishedRow::schema().record()},
      {"system", &SystemConfig::schema().record()},
      {"accelerator", &AcceleratorConfig::schema().record()},
      {"model", &ModelConfig::schema().record()},
      {"software", &TrainingSoftware::schema().record()},
      {"calibration", &Calibration::schema().record()},
      {"algorithm", &UserAlgorithm::schema().record()}};
  return all;
}

}  // namespace

void SchemaArguments::take(Options& options) {
  options.optional_positional(
      "KIND", kind, "experiment (default), sweep, published, system, accelerator or model");
  options.flag("--json", json, "accepted; JSON is the only form");
}

ExitCode SchemaArguments::run() const {
  if (kind == kExperiment) {
    std::cout << config::json_schema(Experiment::choices(), kExperiment).dump(2) << "\n";
    return ExitCode::kOk;
  }
  for (const auto& [name, record] : records()) {
    if (name == kind) {
      std::cout << config::json_schema(*record).dump(2) << "\n";
      return ExitCode::kOk;
    }
  }
  std::string known = kExperiment;
  for (const auto& [name, record] : records()) known += ", " + name;
  throw UsageError("no schema '" + kind + "'; there are: " + known);
}

namespace {

const RegisterVerb<SchemaArguments> registered_schema(
    "schema", "print the JSON Schema (draft-07) of YAML files");

}  // namespace

}  // namespace orrery
