// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "sim/machine/accelerator_config.h"

namespace orrery {

/// The calibration file that `choice` means for an accelerator: "auto" is the one that the
/// accelerator names, "none" no file, anything else a name of the library or a path. Empty: none.
/// @throws config::ConfigError when there is no such file, naming those that exist.
std::string calibration_file(const std::string& choice, const AcceleratorConfig& accelerator);

/// The calibrations that price the kernels of a machine. Empty names: none.
struct CalibrationFiles {
  std::string device;  ///< calibration of the accelerator
  /// Calibrations of an engine's own kernels, best first; asked before that of the device.
  std::vector<std::string> engine;
  auto operator<=>(const CalibrationFiles&) const = default;
};

/// The files for an accelerator under an engine.
/// @param choice see calibration_file(); anything but "auto" leaves the engine's calibrations out
/// @param sets the engine's calibrations, best first: of "vllm_0_24" and a device with the
/// calibration "h200_sxm", the library's "h200_sxm_vllm_0_24". Those that are there are taken.
/// "b200_sxm_vllm_0_24" is that one, whatever the device.
/// @throws config::ConfigError as calibration_file(), and for a set that no device has
CalibrationFiles calibration_files(const std::string& choice, const AcceleratorConfig& accelerator,
                                   const std::vector<std::string>& sets);

}  // namespace orrery
