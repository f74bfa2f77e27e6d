// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <iostream>
#include <nlohmann/json.hpp>

#include "sim/app/cli/calibrate.h"
#include "sim/config/load.h"
#include "sim/results/json_table.h"
#include "sim/units/text.h"
#include "validation/calibration/collective_fit.h"
#include "validation/calibration/error_json.h"

namespace orrery {
namespace {

std::vector<NetworkCalibration> fit_networks(const CalibrateArguments& arguments) {
  std::vector<CollectiveInput> inputs;
  for (const std::string& file : arguments.files) {
    inputs.push_back(read_collective_input(file, arguments.measured()));
    inputs.back().file.source = arguments.source;
  }
  const config::Library& library = config::default_library();
  std::vector<NetworkCalibration> calibrations;
  for (const std::string& name : arguments.systems) {
    const auto system =
        config::load<SystemConfig>(library.locate("systems", name, ""), library, "systems");
    calibrations.push_back(calibrate_network(system, inputs, arguments.made_with()));
  }
  return calibrations;
}

/// Parameters that are not within two standard errors of those of the file: names.
std::vector<std::string> moved(const NetworkCalibration& before, const NetworkCalibration& after) {
  std::vector<std::string> names;
  for (const auto& [name, parameter] : after.parameters) {
    const auto was = before.parameters.find(name);
    const bool same = was != before.parameters.end() &&
                      std::abs(parameter.value - was->second.value) <=
                          std::max(2 * was->second.standard_error, 0.01 * was->second.value);
    if (!same) names.push_back(name);
  }
  return names;
}

/// Writes it, or checks what the file has. @return names that moved
std::vector<std::string> keep(const NetworkCalibration& calibration,
                              const std::filesystem::path& path, bool check) {
  if (!check) {
    require_own_file(path, "network_calibration");
    write_calibration(path, to_yaml(calibration));
    return {};
  }
  std::vector<std::string> names = moved(load_network_calibration(path.string()), calibration);
  for (const std::string& name : names) std::cerr << path.string() << ": moved: " << name << "\n";
  return names;
}

}  // namespace

Answer calibrate_collectives(const CalibrateArguments& arguments) {
  const std::vector<NetworkCalibration> calibrations = fit_networks(arguments);
  arguments.require_files_for(calibrations.size(), "systems");
  Answer answer;
  nlohmann::ordered_json files = nlohmann::ordered_json::array();
  for (const NetworkCalibration& c : calibrations) {
    const std::filesystem::path path = arguments.file_of(c.id, "network_calibrations");
    const std::vector<std::string> names = keep(c, path, arguments.check);
    files.push_back({{"file", path.string()},
                     {"fitted", to_json(c.fit_error)},
                     {"held_out", to_json(c.held_out_error)},
                     {"left_out", to_json(c.left_out_error)}});
    if (arguments.check) files.back()["moved"] = names;
    if (!names.empty()) answer.code = ExitCode::kPartial;
  }
  nlohmann::ordered_json shown = files;
  for (std::size_t i = 0; i < calibrations.size(); ++i) shown[i]["system"] = calibrations[i].id;
  answer.add(
      json_table(shown,
                 "system = system | fitted n = fitted.count count | MAPE = fitted.mape percent | "
                 "held out n = held_out.count count | MAPE = held_out.mape percent | "
                 "p90 = held_out.p90 percent | bias = held_out.bias percent | "
                 "collective and ranks left out = left_out.mape percent"));
  answer.json = {{"schema", "orrery.calibration/1"}, {"files", std::move(files)}};
  return answer;
}

}  // namespace orrery
