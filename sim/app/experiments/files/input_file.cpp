// SPDX-License-Identifier: Apache-2.0
#include "sim/app/experiments/files/input_file.h"

#include <nlohmann/json.hpp>
#include <utility>

#include "sim/app/pricing/kernel_pricing.h"
#include "sim/config/diagnostics.h"
#include "sim/config/input_files.h"
#include "sim/config/output.h"
#include "sim/machine/calibration.h"
#include "sim/results/identity.h"
#include "sim/units/sha256.h"

namespace orrery {

const std::vector<std::string>& names_of_accelerator() {
  static const std::vector<std::string> names = {"name",        "architecture",   "year",
                                                 "calibration", "approximations", "known_errors"};
  return names;
}

void erase_keys(nlohmann::ordered_json& map, const std::vector<std::string>& keys) {
  if (!map.is_object()) return;
  for (const std::string& key : keys) map.erase(key);
}

InputFile file_as_read(const std::string& role, const std::string& path) {
  return {role, path, config::input_files().sha256(path)};
}

InputFile file_read_now(const char* role, const std::string& path) {
  config::FileText file = config::input_files().read(path);
  if (!file.fault.empty()) throw config::ConfigError(path + ": " + file.fault);
  return {role, path, std::move(file.sha256)};
}

namespace {

/// @param path empty: nothing is added
/// @param device_role of what is configured of the device that was measured
void add_calibration(const char* role, const char* device_role, const std::string& path,
                     std::vector<InputFile>& files) {
  if (path.empty()) return;
  const auto calibration = loaded_calibration(path);
  files.push_back(file_as_read(role, path));
  if (!calibration->device) return;
  nlohmann::ordered_json device =
      config::canonical(calibration->device_configuration, AcceleratorConfig::schema().record());
  erase_keys(device, names_of_accelerator());
  files.push_back({device_role, {}, sha256_hex(canonical_json(device))});
}

}  // namespace

void add_kernel_files(const Machine& machine, const std::vector<FilePath>& measured,
                      std::vector<InputFile>& files) {
  add_calibration("calibration", "calibrated_device", machine.calibrations().device, files);
  for (const std::string& engine : machine.calibrations().engine)
    add_calibration("engine_calibration", "engine_device", engine, files);
  for (const FilePath& table : measured) {
    loaded_table(table.path);
    files.push_back(file_as_read("measured", table.path));
  }
}

void add_collective_files(const Machine& machine, std::vector<InputFile>& files) {
  if (!machine.collectives()) return;
  files.push_back(file_as_read("network_calibration", machine.collectives_file()));
}

void require_unchanged(const std::vector<InputFile>& files) {
  for (const InputFile& file : files) {
    if (file.path.empty() || config::input_files().sha256(file.path) == file.sha256) continue;
    throw config::ConfigError(file.path + ": was changed while it was in use; run this again");
  }
}

}  // namespace orrery
