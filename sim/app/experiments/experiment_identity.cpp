// SPDX-License-Identifier: Apache-2.0
#include "sim/app/experiments/experiment_identity.h"

#include <initializer_list>

#include "models/collectives/user_algorithm.h"
#include "sim/app/pricing/kernel_pricing.h"
#include "sim/app/pricing/network_pricing.h"
#include "sim/config/input_files.h"
#include "sim/config/output.h"
#include "sim/units/sha256.h"

namespace orrery {
namespace {

using Names = std::initializer_list<const char*>;
constexpr Names kNamesOfAccelerator = {"name", "architecture", "calibration", "approximations"};

void erase(nlohmann::ordered_json& map, Names keys) {
  if (!map.is_object()) return;
  for (const char* key : keys) map.erase(key);
}

/// Without what only names things: labels, and the names of the model, calibration, measurement and
/// algorithm files, whose content is hashed instead.
nlohmann::ordered_json identity_configuration(nlohmann::ordered_json configuration) {
  erase(configuration, {"name", "calibration", "measured"});
  const auto collective = configuration.find("collective");
  if (collective != configuration.end() && collective->is_object() &&
      config::Library::is_path(collective->value("algorithm", "")))
    erase(*collective, {"algorithm"});
  if (collective != configuration.end()) erase(*collective, {"matrix_file"});
  erase(configuration["model"], {"hf", "source", "model"});
  erase(configuration["system"], {"name", "remarks"});
  erase(configuration["system"]["scale_up"], {"calibration"});
  erase(configuration["system"]["accelerator"], kNamesOfAccelerator);
  return configuration;
}

/// Of a file that has been read, however long ago: what was made of it then is still in use.
ExperimentFile as_read(const char* role, const std::string& path) {
  return {role, path, config::input_files().sha256(path)};
}

/// Of a file that whoever needs it reads again.
ExperimentFile read_now(const char* role, const std::string& path) {
  config::FileText file = config::input_files().read(path);
  if (!file.fault.empty()) throw config::ConfigError(path + ": " + file.fault);
  return {role, path, std::move(file.sha256)};
}

/// The calibration, and by its values the device that it was fitted on.
void add_calibration(const Experiment& experiment, std::vector<ExperimentFile>& files) {
  const std::string path = calibration_file(experiment.calibration, experiment.system.accelerator);
  if (path.empty()) return;
  const auto calibration = loaded_calibration(path);
  files.push_back(as_read("calibration", path));
  if (!calibration->device) return;
  nlohmann::ordered_json device =
      config::canonical(calibration->device_configuration, AcceleratorConfig::schema().record());
  erase(device, kNamesOfAccelerator);
  files.push_back({"calibrated_device", {}, sha256_hex(canonical_json(device))});
}

void add_network_calibration(Experiment& experiment, std::vector<ExperimentFile>& files) {
  const std::string path = network_calibration_file(
      experiment.calibration == "none" ? "none" : "auto", experiment.system);
  if (path.empty()) return;
  experiment.network = loaded_network_calibration(path);
  experiment.network->apply(experiment.system);
  files.push_back(as_read("network_calibration", path));
}

void add_collective(const CollectiveConfig& collective, std::vector<ExperimentFile>& files) {
  if (config::Library::is_path(collective.algorithm)) {
    find_algorithm(collective.algorithm);
    files.push_back(as_read("algorithm", collective.algorithm));
  }
  if (!collective.matrix_file.empty())
    files.push_back(read_now("matrix", collective.matrix_file.path));
}

}  // namespace

// What is parsed is parsed here, because points may run in processes of their own.
std::vector<ExperimentFile> read_files(Experiment& experiment) {
  const bool one_collective = experiment.kind == ExperimentKind::kCollective;
  const bool one_operator = experiment.kind == ExperimentKind::kOperator;
  std::vector<ExperimentFile> files;
  if (!one_collective && !one_operator && !experiment.model.hf.empty())
    files.push_back(read_now("model", experiment.model.hf.path));
  // A wrong name is said even where nothing is priced by it.
  calibration_file(experiment.calibration, experiment.system.accelerator);
  if (!one_collective) {
    add_calibration(experiment, files);
    for (const FilePath& table : experiment.measured) {
      loaded_table(table.path);
      files.push_back(as_read("measured", table.path));
    }
  }
  if (!one_operator) add_network_calibration(experiment, files);
  if (one_collective && experiment.collective) add_collective(*experiment.collective, files);
  return files;
}

std::string identity_of(const nlohmann::ordered_json& configuration,
                        const std::vector<ExperimentFile>& files) {
  std::vector<FileHash> hashes;
  hashes.reserve(files.size());
  for (const ExperimentFile& file : files) hashes.push_back({file.role, file.sha256});
  return point_identity(identity_configuration(configuration), std::move(hashes));
}

void require_unchanged(const std::vector<ExperimentFile>& files) {
  for (const ExperimentFile& file : files) {
    if (file.path.empty() || config::input_files().sha256(file.path) == file.sha256) continue;
    throw config::ConfigError(file.path + ": was changed while it was in use; run this again");
  }
}

}  // namespace orrery
