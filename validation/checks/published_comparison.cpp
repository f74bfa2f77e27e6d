// SPDX-License-Identifier: Apache-2.0
#include "validation/checks/published_comparison.h"

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "sim/app/experiments/core/experiment.h"
#include "sim/app/experiments/files/file_kind.h"
#include "sim/app/sweeps/workers/run_point.h"
#include "sim/config/csv.h"
#include "sim/config/load.h"
#include "sim/config/output.h"
#include "sim/results/metric_table.h"
#include "sim/units/spelling.h"
#include "sim/units/text.h"

namespace orrery {
namespace {

/// A row ready to be run.
struct PublishedPoint {
  PublishedRow row;
  double measured = 0;  ///< measured value in the row's compared_unit()
  LoadedExperiment loaded;
  std::optional<LoadedExperiment> over;  ///< divisor, of a row that is a ratio
};

std::string substitute(std::string text, const config::CsvRow& row) {
  for (const auto& [column, cell] : row) {
    const std::string placeholder = "{" + column + "}";
    for (auto at = text.find(placeholder); at != std::string::npos;
         at = text.find(placeholder, at + cell.size())) {
      text.replace(at, placeholder.size(), cell);
    }
  }
  return text;
}

config::Node substitute(const config::Node& node, const config::CsvRow& row) {
  if (node.is_scalar()) {
    const std::string text = substitute(node.text(), row);
    // A quoted "{seconds}" must be able to become a number.
    return config::Node::scalar(text, node.origin(), node.quoted() && text == node.text());
  }
  if (node.is_sequence()) {
    config::Node copy = config::Node::sequence(node.origin());
    for (const config::Node& item : node.items()) copy.append(substitute(item, row));
    return copy;
  }
  if (!node.is_map()) return node;
  config::Node copy = config::Node::map(node.origin());
  for (const auto& entry : node.entries())
    copy.set(entry.key, substitute(entry.value, row), entry.key_origin);
  return copy;
}

/// The entry itself, or one for every row of its CSV file.
std::vector<config::Node> instances(const config::Node& entry, const std::string& path) {
  const config::Node* rows = entry.find("rows");
  if (rows == nullptr || !rows->is_scalar()) return {entry};
  std::vector<config::Node> nodes;
  const std::string table = config::relative_to(rows->text(), path);
  if (!std::filesystem::exists(table)) {
    config::throw_located(config::KeyError("rows", "no such file '" + rows->text() + "'"), entry);
  }
  for (const config::CsvRow& row : config::read_csv(table)) {
    config::Node node = substitute(entry, row);
    node.erase("rows");
    nodes.push_back(std::move(node));
  }
  return nodes;
}

/// Measured value in the unit that is compared: equal ones, or two of a dimension ("ms" and "s").
double in_compared_unit(const PublishedRow& row) {
  const std::string unit = row.compared_unit();
  if (row.unit.empty() || row.unit == unit) return row.measured;
  const std::string text = print_number(row.measured) + " " + row.unit;
  try {
    if (unit == "s") return parse<Seconds>(text).base();
    if (unit == "B") return parse<Bytes>(text).base();
    if (unit == "B/s") return parse<BytesPerSecond>(text).base();
    if (unit == "FLOP/s") return parse<FlopsPerSecond>(text).base();
    if (unit == "W") return parse<Watts>(text).base();
    if (unit == "J") return parse<Joules>(text).base();
  } catch (const UnitError& error) {
    throw config::KeyError("unit", error.what(), {error.suggestion(), {}});
  }
  const std::string of = row.is_ratio() ? "a ratio of " : "";
  throw config::KeyError(
      "unit", "'" + row.unit + "' is not the unit of " + of + row.metric + " (" + unit + ")");
}

/// The experiment that a ratio divides by.
/// @throws config::ConfigError also where it is the row's own, of which every ratio is 1
LoadedExperiment load_divisor(const PublishedPoint& point, SettingList settings,
                              const config::Node& node, config::Diagnostics& diagnostics,
                              const config::Library& library) {
  for (config::Assignment& setting : settings_of(*node.find("over")))
    settings.push_back(std::move(setting));
  LoadedExperiment divisor =
      load_point_with_settings(*node.find("experiment"), settings, diagnostics, library);
  diagnostics.throw_if_errors();
  if (divisor.identity == point.loaded.identity)
    config::throw_located(config::KeyError("over", "changes nothing: the ratio would be 1"), node);
  divisor.experiment->name = point.row.id;
  return divisor;
}

PublishedPoint load_row(const config::Node& node, config::Diagnostics& diagnostics,
                        const config::Library& library) {
  PublishedPoint point;
  point.row = config::read<PublishedRow>(node, diagnostics, library);
  diagnostics.throw_if_errors();
  const MetricInfo* metric = find_metric(point.row.metric);
  if (metric == nullptr) {
    std::vector<std::string> known;
    for (const auto& [other_name, other] : metric_table()) known.emplace_back(other.name);
    config::report(config::KeyError(
                       "metric", "unknown metric '" + point.row.metric + "'",
                       {nearest_name(point.row.metric, known), {"see `orrery describe metrics`"}}),
                   node, diagnostics);
    diagnostics.throw_if_errors();
  }
  try {
    point.measured = in_compared_unit(point.row);
  } catch (const config::KeyError& error) {
    config::throw_located(error, node);
  }
  const config::Node* set = node.find("set");
  const SettingList settings = set != nullptr ? settings_of(*set) : SettingList{};
  point.loaded = load_point_with_settings(*node.find("experiment"), settings, diagnostics, library);
  diagnostics.throw_if_errors();
  point.loaded.experiment->name = point.row.id;
  if (node.find("over") != nullptr)
    point.over = load_divisor(point, settings, node, diagnostics, library);
  return point;
}

/// @throws config::ConfigError with everything that is wrong.
std::vector<PublishedPoint> load_published(const std::string& path) {
  const config::Library& library = config::default_library();
  config::Diagnostics diagnostics;
  const config::Node file = config::load_file(path, diagnostics, library);
  if (!diagnostics.has_errors() && !file.is_sequence()) {
    diagnostics.error(file.where(), 1,
                      "expected a list of published rows: - {id: ..., experiment: ..., ...}");
  }
  diagnostics.throw_if_errors();
  std::vector<PublishedPoint> points;
  for (const config::Node& entry : file.items()) {
    for (const config::Node& node : instances(entry, path)) {
      points.push_back(load_row(node, diagnostics, library));
    }
  }
  return points;
}

/// A metric as one run has it, or why it has none.
struct RunFigure {
  double value = 0;
  std::string reason, misfit;
  std::optional<std::pair<double, double>> interval;
  nlohmann::ordered_json provenance = nullptr;
};

RunFigure figure_of(const std::string& name, const PointOutcome& outcome) {
  RunFigure figure;
  if (const auto* failure = std::get_if<Failure>(&outcome.result)) {
    figure.reason = failure->message;
    return figure;
  }
  const RunRecord record = timed_record(std::get<std::string>(outcome.result)).record;
  const Metric* metric = record.find(name);
  if (metric == nullptr) {
    figure.reason = record.reason.empty() ? "the experiment has no metric " + name : record.reason;
    return figure;
  }
  figure.value = metric->value;
  if (record.status == RunStatus::kInfeasible) figure.misfit = record.reason;
  figure.interval = metric->interval;
  figure.provenance = record.provenance;
  return figure;
}

/// The quotient of two runs; misfits and reasons of the second are told as such.
RunFigure quotient(const RunFigure& first, const RunFigure& second) {
  RunFigure ratio;
  ratio.reason = first.reason;
  ratio.misfit = first.misfit;
  if (ratio.reason.empty() && !second.reason.empty()) ratio.reason = "over: " + second.reason;
  if (ratio.misfit.empty() && !second.misfit.empty()) ratio.misfit = "over: " + second.misfit;
  if (ratio.reason.empty() && second.value == 0) ratio.reason = "over: the metric is 0";
  if (ratio.reason.empty()) ratio.value = first.value / second.value;
  return ratio;
}

PublishedComparison compare(const PublishedPoint& point, RunFigure figure) {
  PublishedComparison c;
  c.row = point.row;
  c.measured = point.measured;
  c.reason = std::move(figure.reason);
  if (!c.reason.empty()) return c;
  c.predicted = figure.value;
  c.misfit = std::move(figure.misfit);
  c.error = c.predicted / point.measured - 1;
  c.interval = figure.interval;
  c.provenance = std::move(figure.provenance);
  return c;
}

/// One run of a row: ratios have two.
struct RowRun {
  std::size_t row = 0;
  const LoadedExperiment* loaded = nullptr;
};

std::vector<RowRun> runs_of(const std::vector<PublishedPoint>& points) {
  std::vector<RowRun> runs;
  for (std::size_t row = 0; row < points.size(); ++row) {
    runs.push_back({row, &points[row].loaded});
    if (points[row].over) runs.push_back({row, &*points[row].over});
  }
  return runs;
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const std::size_t half = values.size() / 2;
  return values.size() % 2 == 1 ? values[half] : (values[half - 1] + values[half]) / 2;
}

const RegisterFileKind registered_published(
    "published", {"a list of published rows",
                  "validate published",
                  {},
                  [](const config::Node& own) { return own.is_sequence() ? 100 : 0; },
                  [](const std::string& path) {
                    load_published(path);
                    return std::string();
                  },
                  {},
                  [] { return config::json_schema_of_list(PublishedRow::schema().record()); }});

}  // namespace

const config::Schema<PublishedRow>& PublishedRow::schema() {
  static const auto schema =
      config::Schema<PublishedRow>("published",
                                   "a published measurement and the experiment that predicts it")
          .required("id", &PublishedRow::id, "name of the row")
          .required("experiment", &PublishedRow::experiment, "an experiment: path or inline")
          .optional("set", &PublishedRow::set, "path: value, laid over the experiment")
          .optional("over", &PublishedRow::over,
                    "path: value, laid over the experiment after `set`: `measured` is the ratio of "
                    "the metric to that of this other experiment")
          .required("metric", &PublishedRow::metric,
                    "metric to compare (`orrery describe metrics`)")
          .required("measured", &PublishedRow::measured, "published value, in `unit`")
          .optional("unit", &PublishedRow::unit,
                    "unit of `measured`; default: that of the metric, of a ratio 1")
          .optional("tolerance", &PublishedRow::tolerance,
                    "relative error above which the row is marked", config::positive())
          .required("source", &PublishedRow::source, "where it was published")
          .optional(
              "rows", &PublishedRow::rows,
              "CSV file: one entry a row, {column} in the other values standing for its cells");
  return schema;
}

std::string PublishedRow::compared_unit() const {
  return is_ratio() ? "1" : find_metric(metric)->unit;
}

bool PublishedComparison::ok() const { return reason.empty() && std::abs(error) <= row.tolerance; }

bool PublishedComparison::inside() const {
  return interval && interval->first <= measured && measured <= interval->second;
}

std::vector<PublishedComparison> compare_published(const std::vector<std::string>& files,
                                                   const RowDone& done, std::size_t jobs) {
  std::vector<PublishedPoint> points;
  for (const std::string& file : files) {
    for (PublishedPoint& point : load_published(file)) points.push_back(std::move(point));
  }
  const std::vector<RowRun> runs = runs_of(points);
  LocalWorkers workers(jobs, [&runs](std::size_t place) {
    SimulateOptions options;
    options.beyond_memory = true;
    return to_bytes(simulate_timed(*runs[place].loaded, options));
  });
  workers.submit({0, runs.size()});
  std::vector<PublishedComparison> comparisons(points.size());
  std::vector<std::optional<RunFigure>> first(points.size()), second(points.size());
  for (auto outcomes = workers.poll(); !outcomes.empty(); outcomes = workers.poll()) {
    for (const PointOutcome& outcome : outcomes) {
      const RowRun& run = runs[outcome.point];
      const PublishedPoint& point = points[run.row];
      auto& figures = run.loaded == &point.loaded ? first : second;
      figures[run.row] = figure_of(point.row.metric, outcome);
      if (!first[run.row] || (point.over && !second[run.row])) continue;
      comparisons[run.row] = compare(
          point, point.over ? quotient(*first[run.row], *second[run.row]) : *first[run.row]);
      if (done) done(points.size(), point.row.id);
    }
  }
  return comparisons;
}

PublishedSummary summarise(const std::vector<PublishedComparison>& comparisons) {
  PublishedSummary summary;
  std::vector<double> spreads;
  for (const PublishedComparison& c : comparisons) {
    ++summary.rows;
    if (!c.ok()) ++summary.off;
    if (!c.reason.empty()) continue;
    ++summary.predicted;
    summary.mean_absolute += std::abs(c.error);
    summary.bias += c.error;
    summary.deviation += std::pow(std::log1p(c.error), 2);
    if (c.inside()) ++summary.inside;
    if (c.interval) spreads.push_back(c.interval->second / c.interval->first);
    if (!summary.worst_id.empty() && std::abs(c.error) <= std::abs(summary.worst)) continue;
    summary.worst = c.error;
    summary.worst_id = c.row.id;
  }
  if (summary.predicted > 0) {
    summary.mean_absolute /= static_cast<double>(summary.predicted);
    summary.bias /= static_cast<double>(summary.predicted);
    summary.deviation = std::sqrt(summary.deviation / static_cast<double>(summary.predicted));
  }
  summary.intervals = spreads.size();
  if (!spreads.empty()) {
    const auto middle = spreads.begin() + static_cast<std::ptrdiff_t>(spreads.size() / 2);
    std::nth_element(spreads.begin(), middle, spreads.end());
    summary.spread = *middle;
  }
  return summary;
}

std::vector<PublishedSummary> by_source(const std::vector<PublishedComparison>& comparisons) {
  std::vector<std::vector<PublishedComparison>> sources;
  for (const PublishedComparison& c : comparisons) {
    const auto same = std::find_if(sources.begin(), sources.end(), [&c](const auto& rows) {
      return rows.front().row.source == c.row.source;
    });
    if (same == sources.end()) {
      sources.push_back({c});
    } else {
      same->push_back(c);
    }
  }
  std::vector<PublishedSummary> summaries;
  for (const std::vector<PublishedComparison>& rows : sources) {
    summaries.push_back(summarise(rows));
    summaries.back().source = rows.front().row.source;
  }
  return summaries;
}

std::optional<SourceSpread> spread_of(const std::vector<PublishedSummary>& sources) {
  std::vector<double> all;
  for (const PublishedSummary& source : sources)
    if (source.predicted > 0) all.push_back(source.deviation);
  if (all.size() < 2) return std::nullopt;
  SourceSpread spread;
  spread.median = median(all);
  for (std::size_t left = 0; left < all.size(); ++left) {
    std::vector<double> others = all;
    others.erase(others.begin() + static_cast<std::ptrdiff_t>(left));
    const double without = median(std::move(others));
    spread.least = left == 0 ? without : std::min(spread.least, without);
    spread.greatest = std::max(spread.greatest, without);
  }
  return spread;
}

}  // namespace orrery
