// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>
#include <vector>

#include "sim/machine/calibrated_parameter.h"
#include "sim/machine/system_config.h"

namespace orrery {

/// What was measured: outside, a result is extrapolated.
struct CollectiveRange {
  Bytes least, most;
  std::vector<std::int64_t> ranks;  ///< least and greatest
  static const config::Schema<CollectiveRange>& schema();
};

/// Parameters of the protocols of a system (protocols_config.h), fitted to measured collectives:
/// configs/network_calibrations/<system>.yaml, written by `orrery calibrate --system`.
struct NetworkCalibration {
  std::string id;         ///< name of the calibrated system: "dgx_h200"
  std::string system;     ///< the configuration that it was fitted with
  std::string made_with;  ///< program version and date of the fit
  std::vector<MeasurementFile> measurements;
  std::map<std::string, CalibratedParameter> parameters;
  CollectiveRange range;
  ErrorSummary fit_error;       ///< rows that were fitted
  ErrorSummary held_out_error;  ///< the others, one in four
  ErrorSummary left_out_error;
  std::vector<ResidualClass> residuals;  ///< errors by class of the rows that were held out
  static const config::Schema<NetworkCalibration>& schema();

  /// Puts the parameters into the protocols of a system; nothing where it has none.
  void apply(SystemConfig& other) const;
  /// Whether a collective is of a size and a number of ranks that were measured.
  bool covers(Bytes bytes, std::int64_t ranks) const {
    return bytes >= range.least && bytes <= range.most && ranks >= range.ranks.front() &&
           ranks <= range.ranks.back();
  }
};

/// @throws config::ConfigError with what is wrong and where
NetworkCalibration load_network_calibration(const std::string& path);

}  // namespace orrery
