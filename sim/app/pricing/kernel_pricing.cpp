// SPDX-License-Identifier: Apache-2.0
#include "sim/app/pricing/kernel_pricing.h"

#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include "models/kernels/calibrated_model.h"
#include "models/kernels/tile_model.h"
#include "sim/config/diagnostics.h"
#include "sim/config/library.h"
#include "sim/config/load.h"
#include "sim/machine/calibration.h"
#include "sim/units/comma_separated.h"
#include "validation/importers/operator_table.h"

namespace orrery {

std::shared_ptr<const Calibration> loaded_calibration(const std::string& file) {
  static std::map<std::string, std::shared_ptr<const Calibration>> loaded;
  std::shared_ptr<const Calibration>& calibration = loaded[file];
  if (!calibration)
    calibration = std::make_shared<const Calibration>(
        load_calibration(file, config::default_library(), FitsRead::kWhenAsked));
  return calibration;
}

const OperatorTable& loaded_table(const std::string& file) {
  static std::map<std::string, OperatorTable> loaded;
  auto known = loaded.find(file);
  if (known == loaded.end()) known = loaded.emplace(file, read_operator_table(file)).first;
  return known->second;
}

namespace {

/// What a model has worked out about accelerators holds for all experiments of a thread.
using LoadedModels = std::map<CalibrationFiles, std::shared_ptr<const CalibratedModel>>;

/// Fits that come later replace those before them: the engine's best calibration is the last.
Calibration laid_over(const CalibrationFiles& files) {
  std::vector<std::string> worst_first = files.engine;
  std::ranges::reverse(worst_first);
  Calibration all = *loaded_calibration(files.device);
  for (const std::string& file : worst_first) {
    const auto engine = loaded_calibration(file);
    all.id = fmt::format("{} and {}", engine->id, all.id);
    all.fits.append(engine->fits);
  }
  return all;
}

std::shared_ptr<const Calibration> loaded_calibrations(const CalibrationFiles& files) {
  if (files.engine.empty()) return loaded_calibration(files.device);
  return std::make_shared<const Calibration>(laid_over(files));
}

std::shared_ptr<const CalibratedModel> loaded_model(const CalibrationFiles& files) {
  thread_local LoadedModels loaded;
  std::shared_ptr<const CalibratedModel>& model = loaded[files];
  if (!model)
    model = files.device.empty()
                ? std::make_shared<const CalibratedModel>()
                : std::make_shared<const CalibratedModel>(loaded_calibrations(files));
  return model;
}

std::shared_ptr<const CalibratedModel> model_without_ratios(const CalibrationFiles& files) {
  Calibration calibration = *loaded_calibrations(files);
  for (KernelFit& fit : calibration.fits) fit.ratios = {};
  return std::make_shared<const CalibratedModel>(calibration);
}

std::string accelerators_with_calibration() {
  const config::Library& library = config::default_library();
  std::vector<std::string> names = library.names("accelerators");
  std::erase_if(names, [&](const std::string& name) {
    config::Diagnostics ignored;
    const config::Node node = config::load_file(library.locate("accelerators", name, ""), ignored,
                                                library, "accelerators");
    const config::Node* calibration = node.find("calibration");
    return calibration == nullptr || calibration->text().empty();
  });
  return comma_joined(names);
}

}  // namespace

void require_tiles(Fidelity fidelity, const std::string& choice,
                   const AcceleratorConfig& accelerator) {
  if (fidelity != Fidelity::kTile) return;
  const std::string file = calibration_file(choice, accelerator);
  if (!file.empty() && loaded_calibration(file)->model == "tiles") return;
  throw config::KeyError(
      "fidelity",
      "no calibration tells how blocks run on " + accelerator.name +
          ": use fidelity auto or closed, or name a calibration",
      {{}, {"accelerators with a calibration: " + accelerators_with_calibration()}});
}

std::shared_ptr<const CalibratedModel> structure_model(const CalibrationFiles& files) {
  if (files.device.empty()) return loaded_model(files);
  thread_local LoadedModels loaded;
  std::shared_ptr<const CalibratedModel>& model = loaded[files];
  if (!model) model = model_without_ratios(files);
  return model;
}

std::unique_ptr<KernelModel> kernel_model(const CalibrationFiles& files, Fidelity fidelity,
                                          const Contention& contention, TileMemo* memo) {
  return std::make_unique<TileModel>(loaded_model(files), fidelity, contention, memo);
}

std::unique_ptr<KernelModel> kernel_model(const CalibrationFiles& files, Fidelity fidelity) {
  return kernel_model(files, fidelity, {}, nullptr);
}

std::unique_ptr<KernelModel> kernel_model(const std::string& choice,
                                          const AcceleratorConfig& accelerator, Fidelity fidelity) {
  require_tiles(fidelity, choice, accelerator);
  return kernel_model(calibration_files(choice, accelerator, {}), fidelity);
}

}  // namespace orrery
