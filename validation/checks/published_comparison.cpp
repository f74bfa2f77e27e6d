// SPDX-License-Identifier: Apache-2.0
#include "validation/checks/published_comparison.h"

#include <algorithm>
#include <cmath>

#include "sim/app/sweeps/workers/local_workers.h"
#include "sim/app/sweeps/workers/run_point.h"

namespace orrery {
namespace {

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

}  // namespace

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

namespace {

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const std::size_t half = values.size() / 2;
  return values.size() % 2 == 1 ? values[half] : (values[half - 1] + values[half]) / 2;
}

}  // namespace

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
