// SPDX-License-Identifier: Apache-2.0
#include "sim/app/kernel_pricing.h"

#include <filesystem>

#include "models/kernels/calibrated_model.h"
#include "sim/config/diagnostics.h"
#include "sim/config/library.h"
#include "sim/units/spelling.h"
#include "validation/calibration/measured_kernels.h"

namespace orrery {

std::string calibration_file(const std::string& choice, const AcceleratorConfig& accelerator) {
  const std::string name = choice == "auto" ? accelerator.calibration : choice;
  if (name.empty() || name == "none") return {};
  const config::Library& library = config::default_library();
  std::string path = library.locate("calibrations", name, "");
  if (std::filesystem::exists(path)) return path;
  const std::vector<std::string> known = library.names("calibrations");
  const std::string meant = nearest_name(name, known);
  std::string message = "calibration: there is no '" + name + "'";
  if (!meant.empty()) message += "; did you mean '" + meant + "'?";
  message += "; allowed: auto, none, a path";
  for (const std::string& other : known) message += ", " + other;
  throw config::ConfigError(message);
}

std::unique_ptr<KernelModel> kernel_model(const std::string& choice,
                                          const AcceleratorConfig& accelerator) {
  const std::string file = calibration_file(choice, accelerator);
  if (file.empty()) return std::make_unique<CalibratedModel>();
  return std::make_unique<CalibratedModel>(load_calibration(file));
}

std::unique_ptr<KernelModel> kernel_model(const Experiment& experiment) {
  const AcceleratorConfig& accelerator = experiment.system.accelerator;
  auto model = kernel_model(experiment.calibration, accelerator);
  std::vector<MeasuredKernel> measured;
  for (const FilePath& table : experiment.measured) {
    const auto more = measured_kernels(read_operator_table(table.path), accelerator, *model);
    if (more.empty())
      throw config::ConfigError(table.path + ": no row of the accelerator '" + accelerator.id + "'");
    measured.insert(measured.end(), more.begin(), more.end());
  }
  if (measured.empty()) return model;
  return std::make_unique<MeasuredModel>(std::move(model), measured);
}

}  // namespace orrery
