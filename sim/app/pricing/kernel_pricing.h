// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>

#include "sim/app/pricing/calibration_files.h"
#include "sim/machine/kernel_model.h"

namespace orrery {

class CalibratedModel;
class TileMemo;
struct Calibration;
struct Contention;
struct OperatorTable;

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

/// The parameters of those calibrations alone, without the ratios that were measured on whole
/// devices.
std::shared_ptr<const CalibratedModel> structure_model(const CalibrationFiles& files);

/// The kernel model with the parameters of those files, or with the accelerator's priors.
std::unique_ptr<KernelModel> kernel_model(const CalibrationFiles& files,
                                          Fidelity fidelity = Fidelity::kAuto);
/// The same with contention for the memory and a memo.
std::unique_ptr<KernelModel> kernel_model(const CalibrationFiles& files, Fidelity fidelity,
                                          const Contention& contention, TileMemo* memo);

/// The same for what `choice` means for an accelerator without an engine.
/// @throws config::KeyError as require_tiles()
std::unique_ptr<KernelModel> kernel_model(const std::string& choice,
                                          const AcceleratorConfig& accelerator,
                                          Fidelity fidelity = Fidelity::kAuto);

}  // namespace orrery
