// SPDX-License-Identifier: Apache-2.0
#include "sim/app/pricing/network_pricing.h"

#include <filesystem>
#include <map>

#include "sim/config/diagnostics.h"
#include "sim/config/library.h"
#include "sim/units/spelling.h"

namespace orrery {
namespace {

constexpr const char* kFolder = "network_calibrations";

}  // namespace

std::string network_calibration_file(const std::string& choice, const SystemConfig& system) {
  if (choice == "none" || !system.scale_up.protocols) return {};
  const std::string& name = choice == "auto" ? system.scale_up.calibration : choice;
  if (name.empty()) return {};
  const config::Library& library = config::default_library();
  std::string path = library.locate(kFolder, name, "");
  if (std::filesystem::exists(path)) return path;
  const std::vector<std::string> known = library.names(kFolder);
  const std::string meant = nearest_name(name, known);
  throw config::KeyError(choice == "auto" ? "system.scale_up.calibration" : "calibration",
                         "there is no network calibration '" + name + "'", {meant, {}});
}

std::shared_ptr<const NetworkCalibration> loaded_network_calibration(const std::string& file) {
  static std::map<std::string, std::shared_ptr<const NetworkCalibration>> loaded;
  std::shared_ptr<const NetworkCalibration>& calibration = loaded[file];
  if (!calibration)
    calibration = std::make_shared<const NetworkCalibration>(load_network_calibration(file));
  return calibration;
}

}  // namespace orrery
