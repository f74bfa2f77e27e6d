// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "sim/config/declared.h"
#include "sim/graph/kernel.h"
#include "sim/graph/kernel_classes.h"
#include "sim/machine/calibrated_parameter.h"
#include "sim/machine/measured_ratios.h"

namespace orrery {

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
