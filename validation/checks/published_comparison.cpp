// SPDX-License-Identifier: Apache-2.0
#include "validation/checks/published_comparison.h"

#include <algorithm>
#include <cmath>

#include "sim/app/sweeps/executors/local_workers.h"
#include "sim/app/sweeps/run_point.h"

namespace orrery {
namespace {

PublishedComparison compare(const PublishedPoint& point, const PointOutcome& outcome) {
  PublishedComparison c;
  c.row = point.row;
  c.measured = point.measured;
  if (const auto* failure = std::get_if<Failure>(&outcome.result)) {
    c.reason = failure->message;
    return c;
  }
  const RunRecord record = timed_record(std::get<std::string>(outcome.result)).record;
  const Metric* metric = record.find(point.row.metric);
  if (metric == nullptr) {
    c.reason =
        record.reason.empty() ? "the experiment has no metric " + point.row.metric : record.reason;
    return c;
  }
  c.predicted = metric->value;
  if (record.status == RunStatus::kInfeasible) c.misfit = record.reason;
  c.error = c.predicted / point.measured - 1;
  c.interval = metric->interval;
  c.provenance = record.provenance;
  return c;
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
  LocalWorkers workers(jobs, [&points](std::size_t place) {
    SimulateOptions options;
    options.beyond_memory = true;
    return to_bytes(simulate_timed(points[place].loaded, options));
  });
  workers.submit({0, points.size()});
  std::vector<PublishedComparison> comparisons(points.size());
  for (auto outcomes = workers.poll(); !outcomes.empty(); outcomes = workers.poll()) {
    for (const PointOutcome& outcome : outcomes) {
      const PublishedPoint& point = points[outcome.point];
      comparisons[outcome.point] = compare(point, outcome);
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
