// SPDX-License-Identifier: Apache-2.0
#include "sim/app/pricing/calibration_files.h"

#include <fmt/core.h>

#include <filesystem>
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

CalibrationFiles calibration_files(const std::string& choice, const AcceleratorConfig& accelerator,
                                   const std::vector<std::string>& sets) {
  CalibrationFiles files{calibration_file(choice, accelerator), {}};
  if (files.device.empty() || choice != "auto") return files;
  for (const std::string& set : sets) {
    const std::string name = fmt::format("{}_{}", accelerator.calibration, set);
    std::string path = config::default_library().locate("calibrations", name, "");
    if (!std::filesystem::exists(path)) continue;
    files.engine = std::move(path);
    break;
  }
  return files;
}

}  // namespace orrery
