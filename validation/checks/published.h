// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "sim/app/experiments/experiment.h"
#include "sim/config/schema.h"

namespace orrery {

/// A published measurement and the experiment that predicts it. With `rows`, one entry stands for
/// every row of a CSV file, and `{column}` in its values for the cell of that row.
struct PublishedRow {
  std::string id;
  config::Node experiment;  ///< path of an experiment, or an experiment
  std::map<std::string, config::Node> set;
  std::string metric;
  double measured = 0;
  std::string unit;  ///< unit of `measured`: that of the metric or another of its dimension ("ms")
  double tolerance = 0.1;  ///< relative error above which the row is marked
  std::string source;
  FilePath rows;
  static const config::Schema<PublishedRow>& schema();
};

/// A row ready to be run.
struct PublishedPoint {
  PublishedRow row;
  double measured = 0;  ///< measured value in the unit of the metric
  LoadedExperiment loaded;
};

/// @throws config::ConfigError with everything that is wrong.
std::vector<PublishedPoint> load_published(
    const std::string& path, const config::Library& library = config::default_library());

}  // namespace orrery
