// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "sim/app/experiments/core/experiment.h"
#include "sim/config/schema.h"

namespace orrery {

/// A published measurement and the experiment that predicts it. With `rows`, one entry stands for
/// every row of a CSV file, and `{column}` in its values for the cell of that row.
struct PublishedRow {
  std::string id;
  config::Node experiment;  ///< path of an experiment, or an experiment
  std::map<std::string, config::Node> set;
  /// Laid over the experiment after `set`: the experiment whose metric divides the first one's. For
  /// figures that are published as a ratio to another machine alone; empty: no ratio.
  std::map<std::string, config::Node> over;
  std::string metric;
  double measured = 0;
  /// Unit of `measured`: that of the metric or another of its dimension ("ms"); of a ratio "1".
  std::string unit;
  double tolerance = 0.1;  ///< relative error above which the row is marked
  std::string source;
  FilePath rows;

  bool is_ratio() const { return !over.empty(); }
  /// Unit of what is compared: that of the metric, "1" of a ratio. `metric` is a known one.
  std::string compared_unit() const;
  static const config::Schema<PublishedRow>& schema();
};

/// A row ready to be run.
struct PublishedPoint {
  PublishedRow row;
  double measured = 0;  ///< measured value in the row's compared_unit()
  LoadedExperiment loaded;
  std::optional<LoadedExperiment> over;  ///< divisor, of a row that is a ratio
};

/// @throws config::ConfigError with everything that is wrong.
std::vector<PublishedPoint> load_published(
    const std::string& path, const config::Library& library = config::default_library());

}  // namespace orrery
