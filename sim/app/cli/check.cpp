// SPDX-License-Identifier: Apache-2.0
#include <iostream>
#include <nlohmann/json.hpp>

#include "models/collectives/user_algorithm.h"
#include "models/kernels/calibrated_model.h"
#include "models/transfers/flow_model.h"
#include "sim/app/cli/commands.h"
#include "sim/app/experiments/experiment.h"
#include "sim/app/experiments/file_kind.h"
#include "sim/app/experiments/plan_check.h"
#include "sim/app/sweeps/sweep_config.h"
#include "sim/config/load.h"
#include "sim/machine/network_calibration.h"
#include "validation/checks/published.h"
#include "workloads/llm/huggingface.h"

namespace orrery {
namespace {

/// Everything short of simulating: also builds the model and the network and checks that the plan
/// is possible.
void check_experiment_file(const std::string& file) {
  const LoadedExperiment loaded = load_experiment(file, {});
  std::cerr << loaded.warnings << check_plan(loaded);
  check_network(loaded);
}

/// One system, and two where it has a network to others.
void check_system(const std::string& file) {
  config::Diagnostics diagnostics;
  const config::Library& library = config::default_library();
  const config::Node node = config::load_file(file, diagnostics, library, "systems");
  diagnostics.throw_if_errors();
  const auto system = config::read<SystemConfig>(node, diagnostics, library);
  diagnostics.throw_if_errors();
  try {
    const FlowModel network(system, system.accelerator.scale_out.present() ? 2 : 1);
  } catch (const config::KeyError& error) {
    config::throw_located(error, node, "system");
  }
}

void warn_of(const LlmConfig& model) {
  for (const std::string& warning : model.warnings)
    std::cerr << "warning: " << model.name << ": " << warning << "\n";
}

void check_calibration(const std::string& file) { CalibratedModel model(load_calibration(file)); }

void check_file(const std::string& file) {
  switch (file_kind(file)) {
    case FileKind::kExperiment:
      check_experiment_file(file);
      break;
    case FileKind::kSweep:
      check_sweep(file);
      break;
    case FileKind::kPublished:
      check_published(file);
      break;
    case FileKind::kSystem:
      check_system(file);
      break;
    case FileKind::kAccelerator:
      config::load<AcceleratorConfig>(file, config::default_library(), "accelerators");
      break;
    case FileKind::kModel:
      warn_of(config::load<ModelConfig>(file, config::default_library(), "models").build());
      break;
    case FileKind::kHuggingFace:
      warn_of(load_huggingface(file));
      break;
    case FileKind::kAlgorithm:
      find_algorithm(file);
      break;
    case FileKind::kCalibration:
      check_calibration(file);
      break;
    case FileKind::kProtocols:
      config::load<ProtocolsConfig>(file, config::default_library(), "protocols");
      break;
    case FileKind::kNetworkCalibration:
      load_network_calibration(file);
      break;
  }
}

}  // namespace

ExitCode check_command(const CheckArguments& arguments) {
  ExitCode code = ExitCode::kOk;
  nlohmann::ordered_json results = nlohmann::ordered_json::array();
  for (const std::string& file : arguments.files) {
    std::string error;
    try {
      check_file(file);
    } catch (...) {
      const Failure failure = classify(std::current_exception());
      error = failure.message;
      if (code == ExitCode::kOk) code = failure.code;
      std::cerr << error << (error.ends_with('\n') ? "" : "\n");
    }
    if (arguments.json) {
      results.push_back({{"file", file}, {"ok", error.empty()}, {"error", error}});
    } else if (error.empty()) {
      std::cout << file << ": ok\n";
    }
  }
  if (arguments.json)
    std::cout << nlohmann::ordered_json{{"schema", "orrery.check/1"}, {"files", results}}.dump(2)
              << "\n";
  return code;
}

}  // namespace orrery
