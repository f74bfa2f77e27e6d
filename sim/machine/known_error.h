// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "sim/config/declared.h"
#include "sim/graph/precision.h"

namespace orrery {

/// A published result that the model of a device misses by more than its interval. A run that the
/// error may concern prints it under its figures, and its interval reaches to it.
struct KnownError {
  std::string experiment;              ///< kind of experiment that it concerns: "serving"
  std::optional<Precision> precision;  ///< precision that it concerns; absent: all
  double slower = 1;                   ///< measured time over the predicted one
  std::string error;                   ///< predicted and measured figure, and the likely cause
  std::string source;
  static const config::Schema<KnownError>& schema();
};

/// The errors that concern an experiment of one kind in one precision.
/// @return one line each: "MI300X: fp8 training ... (source)"
std::vector<std::string> lines_of(const std::vector<KnownError>& errors, const std::string& device,
                                  const std::string& experiment, Precision precision);

/// The largest `slower` of the errors that concern an experiment of one kind in one precision; 1
/// where none does.
double slowest_of(const std::vector<KnownError>& errors, const std::string& experiment,
                  Precision precision);

}  // namespace orrery
