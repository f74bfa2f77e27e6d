// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>

#include "models/kernels/tile_model.h"
#include "sim/machine/calibration.h"
#include "sim/machine/kernel_model.h"
#include "validation/importers/operator_table.h"

namespace orrery {

/// The calibration file that `choice` means for an accelerator: "auto" is the one that the
/// accelerator names, "none" no file, anything else a name of the library or a path. Empty: none.
/// @throws config::ConfigError when there is no such file, naming those that exist.
std::string calibration_file(const std::string& choice, const AcceleratorConfig& accelerator);

/// A calibration file, read once in a process: points of a sweep that are simulated in processes of
/// their own find it read.
/// @throws config::ConfigError as load_calibration()
std::shared_ptr<const Calibration> loaded_calibration(const std::string& file);

/// A table of measured operators, likewise. @throws config::ConfigError as read_operator_table()
const OperatorTable& loaded_table(const std::string& file);

/// Refuses `fidelity: tile` on a device without a calibration: blocks take their times from its
/// parameters, and priors of the roofline have none.
/// @throws config::KeyError naming the accelerators that have one
void require_tiles(Fidelity fidelity, const std::string& choice,
                   const AcceleratorConfig& accelerator);

/// The parameters of that calibration alone, without the ratios that were measured on whole
/// devices.
std::shared_ptr<const CalibratedModel> structure_model(const std::string& choice,
                                                       const AcceleratorConfig& accelerator);

/// The kernel model with the parameters of that file, or with the accelerator's priors.
/// @param memo of tile results; may be null
/// @throws config::KeyError as require_tiles()
std::unique_ptr<KernelModel> kernel_model(const std::string& choice,
                                          const AcceleratorConfig& accelerator,
                                          Fidelity fidelity = Fidelity::kAuto,
                                          Contention contention = {}, TileMemo* memo = nullptr);

}  // namespace orrery
