// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "sim/machine/network_calibration.h"
#include "validation/importers/operator_table.h"

namespace orrery {

/// A table to fit, and what is to be recorded about its file.
struct CollectiveInput {
  CollectiveTable table;
  MeasurementFile file;
};
CollectiveInput read_collective_input(const std::string& path, const std::string& date);

/// Fits the parameters of a system's protocols to the rows of its accelerator: least squares of
/// log(predicted / measured) with a soft L1 loss within the limits of each parameter, by
/// Levenberg-Marquardt (Ceres). Which algorithm and protocol a row uses is the library's choice and
/// not fitted. One row in four is held out and judges the fit; so does every combination of
/// collective and ranks, predicted by a fit without it. Parameters that no row depends on stay at
/// their prior.
/// @throws config::ConfigError where the system has no protocols or the tables no row of it
NetworkCalibration calibrate_network(const SystemConfig& system,
                                     const std::vector<CollectiveInput>& inputs,
                                     const std::string& made_with);

/// The text of a calibration file.
std::string to_yaml(const NetworkCalibration& calibration);

}  // namespace orrery
