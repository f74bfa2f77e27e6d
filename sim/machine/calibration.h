// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "sim/config/schema.h"
#include "sim/graph/kernel.h"
#include "sim/machine/accelerator_config.h"
#include "sim/machine/measured_ratios.h"

namespace orrery {

/// What the value of a parameter rests on.
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

/// A file of measurements that a calibration rests on.
struct MeasurementFile {
  std::string file;    ///< name without folder
  std::string sha256;  ///< SHA-256 of the file's bytes
  std::string date;    ///< date of the measurement where the file tells, else of the fit
  std::string source;  ///< who measured, and with what
  std::int64_t rows = 0;
  static const config::Schema<MeasurementFile>& schema();
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

/// Rows of a table that a written rule left out (validation/calibration/row_rules.h).
struct LeftOutRows {
  std::string table;
  Precision precision = Precision::kBf16;
  std::string rule;  ///< "faster than the memory"
  std::int64_t rows = 0;
  static const config::Schema<LeftOutRows>& schema();
};

/// What measurements that were not fitted say about predictions of one size: log(measured /
/// predicted) has this median and this spread, half of the range from p10 to p90 over 1.2816 (the
/// standard deviation, were it normal).
struct ResidualClass {
  double below_us = 0;  ///< predictions below this, and above the class before; 0: all others
  std::int64_t count = 0;
  double median = 0;
  double sigma = 0;
  static const config::Schema<ResidualClass>& schema();
};

/// The dimensions of the kernels that were fitted (see Kernel): outside, a result is extrapolated.
struct ShapeRange {
  std::vector<std::int64_t> batch, m, n, k;  ///< least and greatest
  static const config::Schema<ShapeRange>& schema();
};

/// The parameters of the kernel classes that one set of measurements tells about.
struct KernelFit {
  std::string table;  ///< "gemm": what was measured
  Precision precision = Precision::kBf16;
  std::vector<std::string> measurements;                  ///< files, by name
  std::map<std::string, CalibratedParameter> parameters;  ///< "gemm.launch": class and parameter
  std::vector<std::string> fitted;                        ///< the order of the covariance
  std::vector<std::vector<double>> covariance;  ///< covariance of the logarithms of `fitted`
  std::map<KernelClass, ShapeRange> shapes;
  ErrorSummary fit_error;        ///< rows of the shape groups that were fitted
  ErrorSummary held_out_error;   ///< rows of the others
  ErrorSummary structure_error;  ///< error there of the parameters alone, without `ratios`
  /// Each model of the table predicted by a fit of the others; none where rows are of no model.
  ErrorSummary whole_model_error;
  /// The device whose parameters these are, by data sheet, where the table of this one breaks
  /// physics; its rows that do not are all held out. Empty: fitted.
  std::string sibling;
  std::vector<ResidualClass> residuals;
  /// Ratios of rows that were fitted, never of others; arranged (measured_ratios.h).
  MeasuredRatios ratios;
  std::string measured_ratios;  ///< text of the ratios while a file is read; empty afterwards
  static const config::Schema<KernelFit>& schema();
};

/// The machine that was measured: rates that the efficiencies of a calibration are shares of, and
/// what else predictions depend on (0: not recorded, or there is none). Another machine is
/// predicted by the same shares, and extrapolated.
struct CalibratedRates {
  std::map<Precision, FlopsPerSecond> matrix;
  BytesPerSecond memory;
  int units = 0;
  Hertz clock;
  Bytes cache;
  Watts power;  ///< the cap
  static const config::Schema<CalibratedRates>& schema();
};

/// configs/calibrations/<device>.yaml, written by `orrery calibrate`.
struct Calibration {
  std::string id;           ///< name of the calibrated device: "h200_sxm"
  std::string accelerator;  ///< the configuration it was fitted with
  std::string model;        ///< model of kernels: "tiles" or "roofline"
  std::string made_with;    ///< program version and date of the fit
  CalibratedRates rates;
  std::vector<MeasurementFile> measurements;
  std::vector<LeftOutRows> left_out;
  std::vector<KernelFit> fits;
  /// The measured device at the rates that were fitted: values go from it to other devices. Absent:
  /// the library has none of that name, and values stay as they are on other devices.
  std::optional<AcceleratorConfig> device;
  config::Node device_configuration;  ///< device as configured and completed; null where not read
  static const config::Schema<Calibration>& schema();
};

/// `device` at the rates that a calibration records.
AcceleratorConfig at_fitted_rates(AcceleratorConfig device, const CalibratedRates& rates);

/// When the measured ratios of a file are parsed.
enum class RatiosRead : std::uint8_t {
  kNow,       ///< what is wrong in them is wrong in the file
  kWhenAsked  ///< each fit's when KernelFit::ratios is first used: 5 ms instead of 60
};

/// Reads a calibration file, and the device that it was fitted on from the library.
/// @throws config::ConfigError with what is wrong and where.
Calibration load_calibration(const std::string& path,
                             const config::Library& library = config::default_library(),
                             RatiosRead ratios = RatiosRead::kNow);

}  // namespace orrery

namespace orrery::config {

template <>
struct EnumNames<ParameterProvenance> {
  static constexpr std::pair<ParameterProvenance, const char*> values[] = {
      {ParameterProvenance::kMeasured, "measured"}, {ParameterProvenance::kFitted, "fitted"},
      {ParameterProvenance::kPrior, "prior"},       {ParameterProvenance::kDatasheet, "datasheet"},
      {ParameterProvenance::kSibling, "sibling"},
  };
};

template <>
struct EnumNames<KernelClass> {
  static constexpr std::pair<KernelClass, const char*> values[] = {
      {KernelClass::kGemm, "gemm"},
      {KernelClass::kGroupedGemm, "grouped_gemm"},
      {KernelClass::kAttentionPrefill, "attention_prefill"},
      {KernelClass::kAttentionDecode, "attention_decode"},
      {KernelClass::kMlaPrefill, "mla_prefill"},
      {KernelClass::kMlaDecode, "mla_decode"},
      {KernelClass::kNormalization, "normalization"},
      {KernelClass::kElementwise, "elementwise"},
      {KernelClass::kEmbedding, "embedding"},
      {KernelClass::kSoftmax, "softmax"},
      {KernelClass::kOptimizer, "optimizer"},
      {KernelClass::kQuantize, "quantize"},
      {KernelClass::kCopy, "copy"},
  };
};

}  // namespace orrery::config
