// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "sim/machine/calibration.h"

namespace orrery {

/// One row, predicted and measured, in the unit of its table: us of times, W of power.
struct Comparison {
  double predicted = 0, measured = 0;

  double error() const { return predicted / measured - 1; }
};

/// "<10us", "10-100us", "0.1-1ms", "1-10ms" or ">10ms", by measured time.
const char* size_class(double time_us);
/// All of them, smallest first.
const std::vector<std::string>& size_classes();

/// Zero everywhere for no rows. Quantiles interpolate between order statistics.
ErrorSummary summarise(const std::vector<Comparison>& rows);

/// Spread of log(measured / predicted) by decade of the predicted us, which is what is known when
/// a prediction is made. Classes of fewer than 30 rows are merged with their neighbours.
std::vector<ResidualClass> residual_classes(const std::vector<Comparison>& rows);

/// So many significant digits: what a calibration writes is what is used.
double rounded(double value, int digits);
ErrorSummary rounded(ErrorSummary errors, int digits);
std::vector<ResidualClass> rounded(std::vector<ResidualClass> classes, int digits);

}  // namespace orrery
