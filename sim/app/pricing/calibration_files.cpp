// SPDX-License-Identifier: Apache-2.0
#include "sim/app/pricing/calibration_files.h"

#include <fmt/core.h>

#include <algorithm>
#include <filesystem>
#include <set>
#include <utility>

#include "sim/config/diagnostics.h"
#include "sim/config/library.h"
#include "sim/units/comma_separated.h"
#include "sim/units/spelling.h"

namespace orrery {

std::string calibration_file(const std::string& choice, const AcceleratorConfig& accelerator) {
  const std::string name = choice == "auto" ? accelerator.calibration : choice;
  if (name.empty() || name == "none") return {};
  const config::Library& library = config::default_library();
  std::string path = library.locate("calibrations", name, "");
  if (std::filesystem::exists(path)) return path;
  std::vector<std::string> known = library.names("calibrations");
  const std::string meant = nearest_name(name, known);
  known.insert(known.begin(), {"auto", "none", "a path"});
  throw config::KeyError(choice == "auto" ? "system.accelerator.calibration" : "calibration",
                         "there is no calibration '" + name + "'",
                         {meant, {"allowed: " + comma_joined(known)}});
}

namespace {

/// The sets of which some device has a calibration: "vllm_0_24" of "h200_sxm_vllm_0_24", and that
/// name itself.
std::vector<std::string> known_sets(const config::Library& library) {
  const std::vector<std::string> names = library.names("calibrations");
  std::set<std::string> sets;
  for (const std::string& device : names)
    for (const std::string& name : names)
      if (name.starts_with(device + "_")) sets.insert({name.substr(device.size() + 1), name});
  return {sets.begin(), sets.end()};
}

void require_set(const std::string& set, const config::Library& library) {
  const std::vector<std::string> known = known_sets(library);
  if (std::ranges::find(known, set) != known.end()) return;
  throw config::KeyError("engine.kernel_calibrations",
                         "no device has a calibration of the kernels '" + set + "'",
                         {nearest_name(set, known), {"allowed: " + comma_joined(known)}});
}

}  // namespace

CalibrationFiles calibration_files(const std::string& choice, const AcceleratorConfig& accelerator,
                                   const std::vector<std::string>& sets) {
  for (const std::string& set : sets) require_set(set, config::default_library());
  CalibrationFiles files{calibration_file(choice, accelerator), {}};
  if (files.device.empty() || choice != "auto") return files;
  for (const std::string& set : sets) {
    for (const std::string& name : {fmt::format("{}_{}", accelerator.calibration, set), set}) {
      std::string path = config::default_library().locate("calibrations", name, "");
      if (!std::filesystem::exists(path)) continue;
      files.engine.push_back(std::move(path));
      break;
    }
  }
  return files;
}

}  // namespace orrery
