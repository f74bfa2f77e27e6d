// SPDX-License-Identifier: Apache-2.0
#include "sim/app/pricing/kernel_pricing.h"

#include <filesystem>
#include <map>

#include "models/kernels/calibrated_model.h"
#include "sim/config/diagnostics.h"
#include "sim/config/library.h"
#include "sim/config/load.h"
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
using LoadedModels = std::map<std::string, std::shared_ptr<const CalibratedModel>>;

std::shared_ptr<const CalibratedModel> loaded_model(const std::string& file) {
  thread_local LoadedModels loaded;
  std::shared_ptr<const CalibratedModel>& model = loaded[file];
  if (!model)
    model = file.empty() ? std::make_shared<const CalibratedModel>()
                         : std::make_shared<const CalibratedModel>(loaded_calibration(file));
  return model;
}

std::shared_ptr<const CalibratedModel> model_without_ratios(const std::string& file) {
  Calibration calibration = *loaded_calibration(file);
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

std::shared_ptr<const CalibratedModel> structure_model(const std::string& choice,
                                                       const AcceleratorConfig& accelerator) {
  const std::string file = calibration_file(choice, accelerator);
  if (file.empty()) return loaded_model(file);
  thread_local LoadedModels loaded;
  std::shared_ptr<const CalibratedModel>& model = loaded[file];
  if (!model) model = model_without_ratios(file);
  return model;
}

std::unique_ptr<KernelModel> kernel_model(const std::string& choice,
                                          const AcceleratorConfig& accelerator, Fidelity fidelity,
                                          Contention contention, TileMemo* memo) {
  require_tiles(fidelity, choice, accelerator);
  return std::make_unique<TileModel>(loaded_model(calibration_file(choice, accelerator)), fidelity,
                                     contention, memo);
}

}  // namespace orrery
