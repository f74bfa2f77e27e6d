// SPDX-License-Identifier: Apache-2.0
#include "sim/app/sweeps/sweep_config.h"

#include <cmath>
#include <set>

#include "sim/units/text.h"

namespace orrery {

using config::at_least;
using config::between;
using config::Schema;

const Schema<RangeConfig>& RangeConfig::schema() {
  static const auto schema =
      Schema<RangeConfig>("range", "numbers at equal distances, with their unit")
          .required("from", &RangeConfig::from, "first value, such as 64 or 1 TB/s")
          .required("to", &RangeConfig::to, "largest value; it is one where a step ends there")
          .required("step", &RangeConfig::step, "distance of two values");
  return schema;
}

const Schema<LogRangeConfig>& LogRangeConfig::schema() {
  static const auto schema =
      Schema<LogRangeConfig>("logrange", "numbers at equal ratios, with their unit")
          .required("from", &LogRangeConfig::from, "first value, above 0")
          .required("to", &LogRangeConfig::to, "largest value")
          .optional("factor", &LogRangeConfig::factor, "ratio of two values, above 1", at_least(0))
          .optional("count", &LogRangeConfig::count, "number of values, both ends included",
                    between(0, 1e5))
          .check(
              "a logrange has either a factor above 1 or a count of at least 2",
              [](const LogRangeConfig& l) { return (l.factor > 1) != (l.count > 1); }, "factor");
  return schema;
}

const Schema<AxisConfig>& AxisConfig::schema() {
  static const auto schema =
      Schema<AxisConfig>("axis", "values of one key: a list, or a map that says how to make them")
          .optional("values", &AxisConfig::values, "values as they are")
          .optional("range", &AxisConfig::range, "numbers at equal distances")
          .optional("logrange", &AxisConfig::logrange, "numbers at equal ratios")
          .optional("csv", &AxisConfig::csv, "CSV file with the values")
          .optional("column", &AxisConfig::column, "name of the column of the CSV file")
          .shorthand("values");
  return schema;
}

const Schema<DrawConfig>& DrawConfig::schema() {
  static const auto schema =
      Schema<DrawConfig>("draw", "where drawn values lie: min and max, or values")
          .optional("min", &DrawConfig::min, "smallest value, with its unit")
          .optional("max", &DrawConfig::max, "largest value, with its unit")
          .optional("log", &DrawConfig::log, "whether values are even in their logarithm")
          .optional("values", &DrawConfig::values, "values, each as likely as the others")
          .shorthand("values")
          .check(
              "give min and max, or values",
              [](const DrawConfig& d) {
                return d.values.empty() ? !d.min.empty() && !d.max.empty()
                                        : d.min.empty() && d.max.empty();
              },
              "min");
  return schema;
}

const Schema<RandomConfig>& RandomConfig::schema() {
  static const auto schema =
      Schema<RandomConfig>("random", "an axis of points that are drawn, by the seed of the sweep")
          .required("n", &RandomConfig::n, "number of points", between(1, 1e12))
          .optional("sampler", &RandomConfig::sampler,
                    "sobol (low discrepancy: any first part is spread evenly), lhs (Latin "
                    "hypercube: each of n strata of each key once), or uniform (independent)")
          .required("space", &RandomConfig::space, "path: {min, max, log} or {values: [...]}");
  return schema;
}

const Schema<AxesConfig>& AxesConfig::schema() {
  static const auto schema =
      Schema<AxesConfig>("axes", "points of a case")
          .optional("grid", &AxesConfig::grid, "path: values; all combinations, last key fastest")
          .optional("zip", &AxesConfig::zip,
                    "axes of several keys that move together: {path: values, ...} of equal length")
          .optional("random", &AxesConfig::random, "axis of drawn points, crossed with the others")
          .optional("list", &AxesConfig::list,
                    "explicit points, appended: {path: value, ...}, or {csv: FILE} for one a row");
  return schema;
}

const Schema<WhenConfig>& WhenConfig::schema() {
  static const auto schema =
      Schema<WhenConfig>("when", "axes that points have for which a condition holds")
          .required("if", &WhenConfig::condition, "condition, such as model.is_moe")
          .optional("grid", &WhenConfig::grid, "path: values; all combinations")
          .optional("zip", &WhenConfig::zip, "axes of several keys that move together");
  return schema;
}

const Schema<ObjectiveConfig>& ObjectiveConfig::schema() {
  static const auto schema =
      Schema<ObjectiveConfig>("objective", "what is sought, as large or as small as can be")
          .optional("maximize", &ObjectiveConfig::maximize, "metric or configuration path")
          .optional("minimize", &ObjectiveConfig::minimize, "metric or configuration path")
          .check(
              "an objective has either maximize or minimize",
              [](const ObjectiveConfig& o) { return o.maximize.empty() != o.minimize.empty(); },
              "maximize");
  return schema;
}

namespace {

/// Reads "20" and "5%". @return false: it is neither
bool read_failures(const std::string& text, double& number, bool& percent) {
  percent = text.ends_with('%');
  try {
    number = parse_number(percent ? text.substr(0, text.size() - 1) : text);
  } catch (const UnitError&) {
    return false;
  }
  return number >= 0 && (percent ? number <= 100 : number == std::floor(number));
}

bool failures_hold(const LimitsConfig& limits) {
  double number = 0;
  bool percent = false;
  return limits.max_failures.empty() || read_failures(limits.max_failures, number, percent);
}

/// The keys of SweepSpaceConfig.
template <class T>
Schema<T> with_space(Schema<T> schema) {
  using S = SweepSpaceConfig;
  schema.optional("axes", static_cast<AxesConfig T::*>(&S::axes), "points of every row")
      .optional("when", static_cast<std::vector<WhenConfig> T::*>(&S::when),
                "axes that only some points have")
      .optional("where", static_cast<std::vector<std::string> T::*>(&S::where),
                "conditions that points must keep, such as parallel.tp <= 8 or memory.fits")
      .optional("objectives", static_cast<std::vector<ObjectiveConfig> T::*>(&S::objectives),
                "what is sought: {maximize: METRIC}, {minimize: METRIC}")
      .optional("limits", static_cast<std::optional<LimitsConfig> T::*>(&S::limits),
                "what points and runs may take")
      .optional("seed", static_cast<std::optional<std::int64_t> T::*>(&S::seed),
                "seed of drawn points; 0 where none is given", at_least(0))
      .optional("tags", static_cast<std::vector<std::string> T::*>(&S::tags), "words to find it by")
      .optional("notes", static_cast<std::string T::*>(&S::notes), "remarks for people");
  return schema;
}

}  // namespace

std::optional<std::uint64_t> LimitsConfig::failures_allowed(std::uint64_t points) const {
  double number = 0;
  bool percent = false;
  if (max_failures.empty() || !read_failures(max_failures, number, percent)) return std::nullopt;
  const double most = percent ? number / 100 * static_cast<double>(points) : number;
  return static_cast<std::uint64_t>(most);
}

PointLimits LimitsConfig::of_point() const {
  PointLimits limits;
  limits.time = std::chrono::nanoseconds(static_cast<std::int64_t>(point_timeout.base() * 1e9));
  limits.memory = static_cast<std::int64_t>(point_memory.base());
  limits.worker_points = static_cast<std::size_t>(worker_points);
  limits.worker_memory = static_cast<std::int64_t>(worker_memory.base());
  return limits;
}

const Schema<LimitsConfig>& LimitsConfig::schema() {
  static const auto schema =
      Schema<LimitsConfig>("limits", "what points and runs may take; without a limit all they want")
          .optional("point_timeout", &LimitsConfig::point_timeout,
                    "time of one point, after which it has failed", config::positive())
          .optional(
              "point_memory", &LimitsConfig::point_memory,
              "memory of the process that simulates a point, above which the point has failed",
              config::positive())
          .optional("worker_points", &LimitsConfig::worker_points,
                    "points after which a worker process is replaced by a new one; default: 10000",
                    at_least(1))
          .optional("worker_memory", &LimitsConfig::worker_memory,
                    "memory that a worker process may keep of its points before it is replaced; "
                    "default: 1 GiB",
                    config::positive())
          .optional("retries", &LimitsConfig::retries,
                    "further tries of a point whose process died", between(0, 100))
          .optional("max_failures", &LimitsConfig::max_failures,
                    "failed points that end the run: a number, or a share such as 5%")
          .check("max_failures is a whole number or a share, such as 20 or 5%", failures_hold,
                 "max_failures");
  return schema;
}

const Schema<ChooseConfig>& ChooseConfig::schema() {
  static const auto schema =
      Schema<ChooseConfig>("choose", "which point of a row the table shows")
          .optional("maximize", &ChooseConfig::maximize, "metric or configuration path")
          .optional("minimize", &ChooseConfig::minimize, "metric or configuration path")
          .optional("at", &ChooseConfig::at,
                    "p50 (default) compares what is predicted, p90 what holds in nine of ten cases "
                    "(the unfavourable end of p10 to p90), in limits too")
          .optional("at_most", &ChooseConfig::at_most, "metric: upper limit")
          .optional("at_least", &ChooseConfig::at_least, "metric: lower limit")
          .check(
              "maximize and minimize exclude each other",
              [](const ChooseConfig& c) { return c.maximize.empty() || c.minimize.empty(); },
              "minimize");
  return schema;
}

const Schema<SweepTableConfig>& SweepTableConfig::schema() {
  static const auto schema =
      Schema<SweepTableConfig>("table", "what the table of a case shows")
          .optional("rows", &SweepTableConfig::rows,
                    "keys of axes: each of their values has rows of its own, among whose points "
                    "`choose` picks")
          .optional("columns", &SweepTableConfig::columns,
                    "metrics or configuration paths, in the place of the usual columns")
          .optional("gain", &SweepTableConfig::gain,
                    "adds by which factor each row is better than the first and the one above: "
                    "{maximize: METRIC}, {minimize: METRIC}");
  return schema;
}

const Schema<SweepCaseConfig>& SweepCaseConfig::schema() {
  static const auto schema = with_space(
      Schema<SweepCaseConfig>("case", "one comparison of a sweep")
          .required("name", &SweepCaseConfig::name, "title of its table")
          .required("base", &SweepCaseConfig::base, "an experiment: path or inline")
          .optional("variants", &SweepCaseConfig::variants, "rows: {name: ..., path: value, ...}")
          .optional("choose", &SweepCaseConfig::choose, "which point of a row the table shows")
          .optional("table", &SweepCaseConfig::table, "what the table shows"));
  return schema;
}

const Schema<SweepConfig>& SweepConfig::schema() {
  static const auto schema = with_space(
      Schema<SweepConfig>("sweep", "a design-space exploration into one store")
          .named("sweep", &SweepConfig::name)
          .required("cases", &SweepConfig::cases, "comparisons, in the order of the tables")
          .check(
              "a sweep is named as files are, without '/': its store is <name>.db",
              [](const SweepConfig& s) {
                return s.name.find_first_not_of(" \t") != std::string::npos &&
                       s.name.find('/') == std::string::npos;
              },
              "sweep")
          .check(
              "a sweep has cases", [](const SweepConfig& s) { return !s.cases.empty(); }, "cases")
          .optional("search", &SweepConfig::search, "how `sweep search` looks for the best points")
          .optional("execution", &SweepConfig::execution,
                    "where points run: {executor: local}, slurm, command"));
  return schema;
}

const Schema<SearchConfig>& SearchConfig::schema() {
  static const auto schema =
      Schema<SearchConfig>("search", "how `sweep search` looks for the best points")
          .optional("algorithm", &SearchConfig::algorithm,
                    "nsga2 (a population that improves from generation to generation), or random "
                    "(Sobol points alone, to compare with)")
          .optional("population", &SearchConfig::population,
                    "points that a generation keeps, and new ones that it tries", between(4, 4096))
          .optional("evaluations", &SearchConfig::evaluations,
                    "points that are simulated at the last fidelity", at_least(1))
          .optional("seed", &SearchConfig::seed, "number that the points tried follow from",
                    at_least(0))
          .optional("fidelity", &SearchConfig::fidelity,
                    "details of the kernel model, cheap to dear: each generation is simulated with "
                    "the first, the better half of it with the next; only the last one counts")
          .check(
              "a fidelity stands there once",
              [](const SearchConfig& s) {
                return std::set(s.fidelity.begin(), s.fidelity.end()).size() == s.fidelity.size();
              },
              "fidelity");
  return schema;
}

}  // namespace orrery
