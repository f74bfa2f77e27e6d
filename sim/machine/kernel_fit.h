// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "sim/config/declared.h"
#include "sim/graph/kernel.h"
#include "sim/graph/kernel_classes.h"
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

/// Classes that files add are among them.
template <>
struct EnumNames<KernelClass> {
  struct All {
    auto begin() const { return kernel_classes().begin(); }
    auto end() const { return kernel_classes().end(); }
  };
  static constexpr All values{};
};

}  // namespace config

}  // namespace orrery
