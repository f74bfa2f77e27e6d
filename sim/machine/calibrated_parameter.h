// SPDX-License-Identifier: Apache-2.0
// Parts that calibrations of kernels and of networks share.
#pragma once

#include <cstdint>
#include <string>
#include <utility>

#include "sim/config/declared.h"

namespace orrery {

/// A file of measurements that a calibration rests on.
struct MeasurementFile {
  std::string file;    ///< name without folder
  std::string sha256;  ///< SHA-256 of the file's bytes
  std::string date;    ///< date of the measurement where the file tells, else of the fit
  std::string source;  ///< who measured, and with what
  std::int64_t rows = 0;
  static const config::Schema<MeasurementFile>& schema();
};

/// The origin of the value of a parameter.
enum class ParameterProvenance : std::uint8_t {
  kMeasured,   ///< read off one microbenchmark
  kFitted,     ///< fit by least squares over many measurements
  kPrior,      ///< the measurements do not tell: the value stands as it was before
  kDatasheet,  ///< a published figure
  kSibling,    ///< another device's, carried over by the data sheets of both
};
const char* to_string(ParameterProvenance provenance);

/// One parameter of a kernel model: `gemm.launch: {value: 2.3, unit: us, ...}`.
struct CalibratedParameter {
  double value = 0;
  std::string unit = "1";     ///< "1" or "us", as the model names it
  double standard_error = 0;  ///< error in that unit, clustered by shape group; 0 where not fitted
  ParameterProvenance provenance = ParameterProvenance::kPrior;
  static const config::Schema<CalibratedParameter>& schema();
};

/// Predicted against measured over some rows; errors are (predicted - measured) / measured.
struct ErrorSummary {
  std::int64_t count = 0;
  double mape = 0;    ///< mean absolute error
  double median = 0;  ///< median absolute error
  double p90 = 0;     ///< 90th percentile of the absolute error
  double bias = 0;    ///< mean signed error
  double worst = 0;   ///< the signed error of the largest size
  static const config::Schema<ErrorSummary>& schema();
};

/// Errors of held-out measurements whose predictions are of one size: median and spread of
/// log(measured / predicted). The spread is half of the range from p10 to p90, divided by 1.2816;
/// of a normal distribution this is the standard deviation.
struct ResidualClass {
  /// Upper bound of the predictions, in us; the class before ends at the lower one. The last class
  /// has no upper bound and says 0.
  double below_us = 0;
  std::int64_t count = 0;
  double median = 0;
  double sigma = 0;
  static const config::Schema<ResidualClass>& schema();
};

namespace config {

template <>
struct EnumNames<ParameterProvenance> {
  using enum ParameterProvenance;
  static constexpr std::pair<ParameterProvenance, const char*> values[] = {
      {kMeasured, "measured"},
      {kFitted, "fitted"},
      {kPrior, "prior"},
      {kDatasheet, "datasheet"},
      {kSibling, "sibling"}};
};

}  // namespace config

}  // namespace orrery
