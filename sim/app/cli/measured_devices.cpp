// SPDX-License-Identifier: Apache-2.0
#include "sim/app/cli/measured_devices.h"

#include <algorithm>
#include <filesystem>
#include <vector>

#include "sim/app/experiments/engines/engine_site.h"
#include "sim/app/pricing/kernel_pricing.h"
#include "sim/config/load.h"
#include "sim/machine/calibration.h"

namespace orrery {
namespace {

/// A folder stands for the files of its devices.
std::string baseline_of(const std::string& name, const std::string& system) {
  if (!std::filesystem::is_directory(name)) return name;
  const auto file = std::filesystem::path(name) / (system + ".yaml");
  return std::filesystem::exists(file) ? file.string() : "";
}

Fidelity fidelity_named(const std::string& name) {
  if (name == "closed") return Fidelity::kClosed;
  return name == "tile" ? Fidelity::kTile : Fidelity::kAuto;
}

RowSoftware software_of(const SchedulerConfig* engine, const AcceleratorConfig& accelerator) {
  InferenceConfig config;
  config.mx_products = scales_blocks(accelerator);
  config.index_precision = index_precision(accelerator);
  if (engine != nullptr) use_kernels(*engine, config);
  return {config.kernels, config.mx_products, config.index_precision};
}

std::optional<MeasuredDevice> find_device(const std::string& system, const MeasuredEngine& engine,
                                          const KernelModels& models) {
  const config::Library& library = config::default_library();
  const std::string path = library.locate("accelerators", system, "");
  if (!std::filesystem::exists(path)) return std::nullopt;
  MeasuredDevice device;
  device.accelerator = config::load<AcceleratorConfig>(path, library, "accelerators");
  const Fidelity fidelity = fidelity_named(models.fidelity);
  require_tiles(fidelity, models.calibration, device.accelerator);
  const auto measured =
      measured_engine(engine.framework, engine.version, engine_site(device.accelerator, {}));
  const CalibrationFiles files = calibration_files(
      models.calibration, device.accelerator,
      measured.object ? measured.object->kernel_calibrations : std::vector<std::string>());
  device.software = software_of(measured.object.get(), device.accelerator);
  device.model = kernel_model(files, fidelity);
  device.has_engine = !files.engine.empty();
  if (!files.device.empty()) {
    const auto calibration = loaded_calibration(files.device);
    if (calibration->accelerator != device.accelerator.id) device.transferred = calibration->id;
  }
  const std::string baseline = baseline_of(models.baseline, system);
  if (!baseline.empty())
    device.baseline = kernel_model(baseline, device.accelerator, Fidelity::kClosed);
  return device;
}

}  // namespace

const MeasuredDevice* MeasuredDevices::of(std::uint32_t system, std::uint32_t engine) {
  const auto [at, is_new] = found_.try_emplace({system, engine});
  if (is_new) at->second = find_device(table_.systems[system], table_.engines[engine], models_);
  return at->second ? &*at->second : nullptr;
}

const AcceleratorConfig* MeasuredDevices::accelerator(const std::string& system) {
  const auto at = std::ranges::find(table_.systems, system);
  const MeasuredDevice* device = of(static_cast<std::uint32_t>(at - table_.systems.begin()), 0);
  return device ? &device->accelerator : nullptr;
}

}  // namespace orrery
