// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "sim/app/experiments/core/experiment.h"
#include "sim/app/sweeps/workers/local_workers.h"
#include "sim/config/schema.h"
#include "validation/checks/row_done.h"

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

/// A published row beside its prediction.
struct PublishedComparison {
  PublishedRow row;
  double measured = 0;  ///< measured value in the row's compared_unit()
  std::string reason;   ///< why there is no prediction
  std::string misfit;   ///< the prediction is of a step that is said not to fit: by how much
  double predicted = 0;
  double error = 0;  ///< predicted / measured - 1
  /// p10, p90 of the prediction. None of a ratio: what both runs are unsure of divides out, how
  /// much of it is shared is not known.
  std::optional<std::pair<double, double>> interval;
  nlohmann::ordered_json provenance = nullptr;  ///< null of a ratio, which rests on two

  bool ok() const;
  /// Whether the measured value is in the interval, which four of five should be.
  bool inside() const;
};

/// Runs the experiments of files of published rows, `jobs` at a time, in other processes: a crash
/// costs one row.
/// @throws config::ConfigError with everything that is wrong
std::vector<PublishedComparison> compare_published(const std::vector<std::string>& files,
                                                   const RowDone& done = nullptr,
                                                   std::size_t jobs = available_processors());

/// Errors of several rows.
struct PublishedSummary {
  std::string source;  ///< document that all of them are from; empty: several
  std::size_t rows = 0;
  std::size_t predicted = 0;
  double mean_absolute = 0;   ///< error of those with a prediction
  double bias = 0;            ///< mean signed error of those with a prediction
  double deviation = 0;       ///< root mean square of log(measured / predicted)
  double worst = 0;           ///< worst signed error
  std::string worst_id;       ///< empty: none has a prediction
  std::size_t off = 0;        ///< rows outside their tolerance, or without a prediction
  std::size_t intervals = 0;  ///< predictions with an interval
  std::size_t inside = 0;     ///< those whose interval has the measured value
  double spread = 0;          ///< median p90 over p10
};

PublishedSummary summarise(const std::vector<PublishedComparison>& comparisons);
/// In the order in which the sources come first.
std::vector<PublishedSummary> by_source(const std::vector<PublishedComparison>& comparisons);

/// What graphs of steps leave out, as sources that judge others know it: the median of their
/// deviations, and the least and greatest such median without one of them.
struct SourceSpread {
  double median = 0, least = 0, greatest = 0;
};
/// None of fewer than two sources with predictions.
std::optional<SourceSpread> spread_of(const std::vector<PublishedSummary>& sources);

}  // namespace orrery
