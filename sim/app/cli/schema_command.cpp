// SPDX-License-Identifier: Apache-2.0
#include <iostream>

#include "models/collectives/user_algorithm.h"
#include "sim/app/cli/commands.h"
#include "sim/app/experiments/experiment.h"
#include "sim/app/sweeps/sweep_config.h"
#include "sim/config/output.h"
#include "sim/machine/calibration.h"
#include "validation/checks/published.h"

namespace orrery {
namespace {

constexpr const char* kExperiment = "experiment";

const std::vector<std::pair<std::string, const config::Record*>>& records() {
  static const std::vector<std::pair<std::string, const config::Record*>> all = {
      {"sweep", &SweepConfig::schema().record()},
      {"published", &PublishedRow::schema().record()},
      {"system", &SystemConfig::schema().record()},
      {"accelerator", &AcceleratorConfig::schema().record()},
      {"model", &ModelConfig::schema().record()},
      {"calibration", &Calibration::schema().record()},
      {"algorithm", &UserAlgorithm::schema().record()}};
  return all;
}

}  // namespace

ExitCode schema_command(const SchemaArguments& arguments) {
  if (arguments.kind == kExperiment) {
    std::cout << config::json_schema(Experiment::choices(), kExperiment).dump(2) << "\n";
    return ExitCode::kOk;
  }
  for (const auto& [name, record] : records()) {
    if (name == arguments.kind) {
      std::cout << config::json_schema(*record).dump(2) << "\n";
      return ExitCode::kOk;
    }
  }
  std::string known = kExperiment;
  for (const auto& [name, record] : records()) known += ", " + name;
  throw UsageError("no schema '" + arguments.kind + "'; there are: " + known);
}

}  // namespace orrery
