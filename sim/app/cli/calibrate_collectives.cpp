// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <filesystem>
#include <iostream>
#include <nlohmann/json.hpp>

#include "sim/app/cli/answer_text.h"
#include "sim/app/cli/calibrate.h"
#include "sim/app/sweeps/base/clock.h"
#include "sim/config/load.h"
#include "sim/results/version.h"
#include "sim/trace/atomic_file.h"
#include "sim/units/text.h"
#include "validation/calibration/collective_fit.h"
#include "validation/calibration/error_json.h"

namespace orrery {
namespace {

namespace fs = std::filesystem;

fs::path output_path(const CalibrateArguments& arguments, const std::string& system) {
  const fs::path output(arguments.output.empty()
                            ? config::default_library().root() / "network_calibrations"
                            : fs::path(arguments.output));
  return output.extension() == ".yaml" ? output : output / (system + ".yaml");
}

std::vector<NetworkCalibration> fit_all(const CalibrateArguments& arguments) {
  const std::string date = arguments.date.empty() ? utc_now().substr(0, 10) : arguments.date;
  std::vector<CollectiveInput> inputs;
  for (const std::string& file : arguments.files) {
    inputs.push_back(read_collective_input(file, date));
    inputs.back().file.source = arguments.source;
  }
  const config::Library& library = config::default_library();
  std::vector<NetworkCalibration> calibrations;
  for (const std::string& name : arguments.systems) {
    const auto system =
        config::load<SystemConfig>(library.locate("systems", name, ""), library, "systems");
    calibrations.push_back(
        calibrate_network(system, inputs, std::string("orrery ") + kEngineVersion + ", " + date));
  }
  return calibrations;
}

void print(const std::vector<NetworkCalibration>& calibrations) {
  Table table = Table::titled(
      "system | >fitted n | >MAPE | >held out n | >MAPE | >p90 | >bias | >collective and ranks "
      "left out");
  for (const NetworkCalibration& c : calibrations) {
    table.add_row({c.id, std::to_string(c.fit_error.count), format_percent(c.fit_error.mape),
                   std::to_string(c.held_out_error.count), format_percent(c.held_out_error.mape),
                   format_percent(c.held_out_error.p90), format_percent(c.held_out_error.bias),
                   format_percent(c.left_out_error.mape)});
  }
  print(table, std::cout);
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

}  // namespace

ExitCode calibrate_collectives_command(const CalibrateArguments& arguments) {
  const std::vector<NetworkCalibration> calibrations = fit_all(arguments);
  if (arguments.output.ends_with(".yaml") && calibrations.size() > 1)
    throw UsageError("one output file for " + std::to_string(calibrations.size()) + " systems");
  nlohmann::ordered_json files = nlohmann::ordered_json::array();
  bool any_moved = false;
  for (const NetworkCalibration& calibration : calibrations) {
    const fs::path path = output_path(arguments, calibration.id);
    nlohmann::ordered_json file = {{"file", path.string()},
                                   {"fitted", to_json(calibration.fit_error)},
                                   {"held_out", to_json(calibration.held_out_error)},
                                   {"left_out", to_json(calibration.left_out_error)}};
    if (arguments.check) {
      const auto names = moved(load_network_calibration(path.string()), calibration);
      any_moved = any_moved || !names.empty();
      file["moved"] = names;
      for (const std::string& name : names)
        std::cerr << path.string() << ": moved: " << name << "\n";
    } else {
      require_own_file(path.string(), "network_calibration");
      fs::create_directories(path.parent_path());
      AtomicFile out(path);
      out.stream() << to_yaml(calibration);
      out.commit();
      std::cerr << "written: " << path.string() << "\n";
    }
    files.push_back(std::move(file));
  }
  if (arguments.json) {
    std::cout << nlohmann::ordered_json{{"schema", "orrery.calibration/1"},
                                        {"files", std::move(files)}}
                     .dump(2)
              << "\n";
  } else {
    print(calibrations);
  }
  return any_moved ? ExitCode::kPartial : ExitCode::kOk;
}

}  // namespace orrery
