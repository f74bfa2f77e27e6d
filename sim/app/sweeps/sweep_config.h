// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "sim/app/experiments/keys/enum_names.h"
#include "sim/app/sweeps/executors/execution.h"
#include "sim/app/sweeps/workers/outcome.h"
#include "sim/config/declared.h"
#include "sim/config/file_path.h"
#include "sim/config/node.h"
#include "sim/config/schema.h"
#include "sim/graph/costs.h"
#include "sim/results/run_record.h"
#include "sim/units/units.h"

namespace orrery {

/// Numbers from `from` to `to`, both included, `step` apart; with their units.
struct RangeConfig {
  std::string from, to, step;
  static const config::Schema<RangeConfig>& schema();
};

/// Numbers from `from` up to `to`, each `factor` times the one before, or `count` of them.
struct LogRangeConfig {
  std::string from, to;
  double factor = 0;       ///< 0: by count
  std::int64_t count = 0;  ///< 0: by factor
  static const config::Schema<LogRangeConfig>& schema();
};

/// The values of one axis: listed, or made in one of these ways.
struct AxisConfig {
  std::vector<config::Node> values;
  std::optional<RangeConfig> range;
  std::optional<LogRangeConfig> logrange;
  FilePath csv;
  std::string column;  ///< column of the CSV file
  static const config::Schema<AxisConfig>& schema();
};

enum class Sampler { kSobol, kLatinHypercube, kUniform };

/// Where a drawn value lies: between two numbers, or one of some values.
struct DrawConfig {
  std::string min, max;
  bool log = false;  ///< evenly in the logarithm
  std::vector<config::Node> values;
  static const config::Schema<DrawConfig>& schema();
};

struct RandomConfig {
  std::int64_t n = 0;
  Sampler sampler = Sampler::kSobol;
  std::map<std::string, DrawConfig> space;
  static const config::Schema<RandomConfig>& schema();
};

/// Points of a case: the cross product of `grid`, `zip` and `random`, then those of `list`. Keys
/// are dotted paths of the experiment.
struct AxesConfig {
  std::map<std::string, AxisConfig> grid;
  std::vector<std::map<std::string, AxisConfig>> zip;
  std::optional<RandomConfig> random;
  std::vector<std::map<std::string, config::Node>> list;
  static const config::Schema<AxesConfig>& schema();
};

/// Axes that only points have for which a condition holds.
struct WhenConfig {
  std::string condition;
  std::map<std::string, AxisConfig> grid;
  std::vector<std::map<std::string, AxisConfig>> zip;
  static const config::Schema<WhenConfig>& schema();
};

/// What is sought in a sweep: a metric, or a path of the configuration, as large or as small as can
/// be. One of the two is given.
struct ObjectiveConfig {
  std::string maximize;
  std::string minimize;
  const std::string& name() const { return maximize.empty() ? minimize : maximize; }
  bool operator==(const ObjectiveConfig&) const = default;
  static const config::Schema<ObjectiveConfig>& schema();
};

/// What points and runs may take; 0: as much as they do.
struct LimitsConfig {
  Seconds point_timeout;                ///< time of one point
  Bytes point_memory;                   ///< memory of the process that simulates one point
  int retries = 0;                      ///< further tries of a point whose process died
  std::int64_t worker_points = 10'000;  ///< points after which a worker is replaced
  Bytes worker_memory{1 << 30};         ///< memory that a worker may keep of its points
  std::string max_failures;  ///< failed points that end the run: "20", "5%"; empty: none do
  /// How many points may fail of so many; none: all.
  std::optional<std::uint64_t> failures_allowed(std::uint64_t points) const;
  PointLimits of_point() const;
  static const config::Schema<LimitsConfig>& schema();
};

/// What a file has for all of its cases, and each case for itself: axes, conditions, tags and notes
/// add up; objectives, limits and the seed of a case stand in the place of those of the file.
struct SweepSpaceConfig {
  AxesConfig axes;
  std::vector<WhenConfig> when;
  std::vector<std::string> where;
  std::vector<ObjectiveConfig> objectives;
  std::optional<LimitsConfig> limits;
  std::optional<std::int64_t> seed;
  std::vector<std::string> tags;
  std::string notes;
};

/// Which value of a metric counts: the predicted one, or the unfavourable end of its p10 to p90.
enum class ChooseAt { kP50, kP90 };

/// Which point of those with one name the table shows; without maximize and minimize all that keep
/// the limits. Limits are on metrics, with their unit ("50 ms") where metrics have one. What is
/// optimised is a metric or a configuration path. A quantile of a metric is "step_time_s.p90".
struct ChooseConfig {
  std::string maximize;
  std::string minimize;
  ChooseAt at = ChooseAt::kP50;
  std::map<std::string, config::Node> at_most;
  std::map<std::string, config::Node> at_least;
  /// Whether one point of a row is the best; else all that keep the limits are shown.
  bool optimises() const { return !maximize.empty() || !minimize.empty(); }
  static const config::Schema<ChooseConfig>& schema();
};

/// What the table of a case shows beside, or in the place of, what its kind of experiment shows.
struct SweepTableConfig {
  std::vector<std::string> rows;        ///< axes each of whose values is a row of its own
  std::vector<std::string> columns;     ///< metrics or configuration paths; none: the usual ones
  std::optional<ObjectiveConfig> gain;  ///< how much better rows are than others in this
  static const config::Schema<SweepTableConfig>& schema();
};

/// One comparison: a base experiment, and variants of it (rows of the table), each crossed with the
/// axes. A variant has a `name`; variants of the same name are one row.
struct SweepCaseConfig : SweepSpaceConfig {
  std::string name;
  config::Node base;  ///< path of an experiment, or an experiment
  std::vector<std::map<std::string, config::Node>> variants;
  ChooseConfig choose;
  SweepTableConfig table;
  static const config::Schema<SweepCaseConfig>& schema();
};

enum class SearchMethod { kNsga2, kRandom };

/// How `sweep search` looks for the best points of a sweep.
struct SearchConfig {
  SearchMethod algorithm = SearchMethod::kNsga2;
  std::int64_t population = 64;     ///< points that are kept, and new ones in each generation
  std::int64_t evaluations = 1000;  ///< points at the last fidelity
  std::int64_t seed = 1;
  /// Details of the kernel model, each generation thinned from one to the next; empty: points are
  /// as the sweep says.
  std::vector<Fidelity> fidelity;
  static const config::Schema<SearchConfig>& schema();
};

struct SweepConfig : SweepSpaceConfig {
  std::string name;
  std::vector<SweepCaseConfig> cases;
  SearchConfig search;
  std::optional<config::OneOf<ExecutionConfig>> execution;  ///< where points run; none: here
  static const config::Schema<SweepConfig>& schema();

  /// What a case seeks: its objectives, else those of the file.
  const std::vector<ObjectiveConfig>& objectives_of(const SweepCaseConfig& described) const {
    return described.objectives.empty() ? objectives : described.objectives;
  }
  LimitsConfig limits_of(const SweepCaseConfig& described) const {
    return described.limits ? *described.limits : limits.value_or(LimitsConfig{});
  }
  std::int64_t seed_of(const SweepCaseConfig& described) const {
    return described.seed ? *described.seed : seed.value_or(0);
  }
};

/// The record that `choose` picks of one row, or null if none keeps the limits.
const RunRecord* choose(const ChooseConfig& choice, const std::vector<const RunRecord*>& row);

/// Names of the metrics that are numbers.
std::vector<std::string> metric_names();

/// What a name stands for in a result.
struct NamedValue {
  double value = 0;
  std::string unit;
};
/// The value of a metric or of one of its quantiles ("step_time_s.p90"), else of a numeric path of
/// the configuration; none where the result has none.
std::optional<NamedValue> value_of(const RunRecord& record, const std::string& name);

/// Whether a result is one and keeps the limits.
bool keeps_limits(const ChooseConfig& choice, const RunRecord& record);

/// How far a result is beyond the limits: the sum of its shares of each limit; 0 where it keeps
/// them, infinite where it is no result or has not what is limited.
double excess_over_limits(const ChooseConfig& choice, const RunRecord& record);

/// The items of a list of texts, or the text that stands for a list of one.
inline std::vector<config::Node> items_of(const config::Node& list) {
  return list.is_scalar() ? std::vector<config::Node>{list} : list.items();
}

/// What results of a case can be told and compared by.
struct PointNames {
  std::string kind;                ///< kind of experiment, whose metrics they have; empty: several
  std::vector<std::string> paths;  ///< keys of the configuration
};

/// Finds fault with names that no result of the case has, and limits without their unit.
/// @param written the node that `choice` was read from
void check_choice(const ChooseConfig& choice, const config::Node& written, const PointNames& names,
                  config::Diagnostics& diagnostics);

/// Finds fault with objectives that no result has. @param written the node of the list
void check_objectives(const config::Node& written, const PointNames& names,
                      config::Diagnostics& diagnostics);

/// Finds fault with columns and gains that no result has. @param written the node of the table
void check_table(const config::Node& written, const PointNames& names,
                 config::Diagnostics& diagnostics);

namespace config {

template <>
struct EnumNames<ChooseAt> {
  static constexpr std::pair<ChooseAt, const char*> values[] = {{ChooseAt::kP50, "p50"},
                                                                {ChooseAt::kP90, "p90"}};
};

template <>
struct EnumNames<Sampler> {
  static constexpr std::pair<Sampler, const char*> values[] = {{Sampler::kSobol, "sobol"},
                                                               {Sampler::kLatinHypercube, "lhs"},
                                                               {Sampler::kUniform, "uniform"}};
};

template <>
struct EnumNames<SearchMethod> {
  static constexpr std::pair<SearchMethod, const char*> values[] = {
      {SearchMethod::kNsga2, "nsga2"}, {SearchMethod::kRandom, "random"}};
};
}  // namespace config

}  // namespace orrery
