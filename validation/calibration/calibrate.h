// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "sim/machine/accelerator_config.h"
#include "sim/machine/calibration.h"
#include "validation/calibration/sibling.h"
#include "validation/importers/operator_table.h"

namespace orrery {

/// A table and the file it came from.
struct CalibrationInput {
  OperatorTable table;
  MeasurementFile file;
  std::vector<std::string> only = {};  ///< fits to make of it ("moe_w4"); empty: all
};

/// The record of a file that was measured; `date` stands for the measurement's.
MeasurementFile measurement_file(const std::string& path, const std::string& date);

/// Reads a table with the hash of its file. `date` stands for the measurement's where the table has
/// none.
/// @param where which rows count
/// @throws config::ConfigError as read_operator_table().
CalibrationInput read_calibration_input(const std::string& path, const std::string& date,
                                        const std::vector<RowCondition>& where = {});

/// Called before each fit: "gemm fp8", rows that are fitted.
using FitProgress = std::function<void(const std::string& what, std::size_t rows)>;

/// Fits everything that the tables tell about an accelerator; rows belong to it by their `system`.
/// Shape groups that are held out (operator_kernels.h) are only used to state errors and residuals;
/// rows that a written rule leaves out (row_rules.h) are counted. A table of which more than one
/// row in twenty of those beyond the L2 breaks physics tells nothing: the device takes the
/// parameters of its sibling among `others`, and none where it has no sibling.
/// @throws config::ConfigError when no row is of this accelerator.
/// @param model "tiles" or "roofline"
Calibration calibrate(const std::string& model, const AcceleratorConfig& accelerator,
                      const std::vector<CalibrationInput>& inputs, const std::string& made_with,
                      const FitProgress& progress, const CalibratedDevices& others = {});

/// `known` with what `made` has anew: its fits and files in place of those of the same name, and
/// what was left out of its tables.
/// @throws config::ConfigError where the two are of other rates or models
Calibration renewed(Calibration known, const Calibration& made);

/// The YAML text of a calibration file; load_calibration() reads it back equal.
std::string to_yaml(const Calibration& calibration);

}  // namespace orrery
