// SPDX-License-Identifier: Apache-2.0
#include <array>
#include <cmath>
#include <cstdio>
#include <iostream>

#include "sim/app/commands.h"
#include "sim/app/progress.h"
#include "sim/app/published.h"
#include "sim/app/run.h"
#include "sim/results/metric_table.h"
#include "sim/results/table.h"

namespace orrery {
namespace {

/// A published row beside its prediction.
struct Comparison {
  const PublishedPoint* point = nullptr;
  std::string reason;  ///< why there is no prediction
  double predicted = 0;
  double error = 0;  ///< predicted / measured - 1
  nlohmann::ordered_json provenance = nullptr;

  bool ok() const { return reason.empty() && std::abs(error) <= point->row.tolerance; }
};

Comparison compare(const PublishedPoint& point) {
  Comparison c;
  c.point = &point;
  try {
    const RunRecord record = simulate_isolated(point.loaded).record;
    const Metric* metric = record.find(point.row.metric);
    if (metric == nullptr) {
      c.reason = record.reason.empty() ? "the experiment has no metric " + point.row.metric
                                       : record.reason;
      return c;
    }
    c.predicted = metric->value;
    c.error = c.predicted / point.measured - 1;
    c.provenance = record.provenance;
  } catch (const PointFailure& failure) {
    c.reason = failure.what();
  }
  return c;
}

struct Summary {
  double mean_absolute = 0;
  const Comparison* worst = nullptr;
  std::size_t off = 0;  ///< outside their tolerance, or without a prediction
};

Summary summarize(const std::vector<Comparison>& comparisons) {
  Summary summary;
  std::size_t predicted = 0;
  for (const Comparison& c : comparisons) {
    if (!c.ok()) ++summary.off;
    if (!c.reason.empty()) continue;
    ++predicted;
    summary.mean_absolute += std::abs(c.error);
    if (summary.worst == nullptr || std::abs(c.error) > std::abs(summary.worst->error))
      summary.worst = &c;
  }
  if (predicted > 0) summary.mean_absolute /= static_cast<double>(predicted);
  return summary;
}

std::string percent(double share) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%+.1f %%", 100 * share);
  return text.data();
}

void print(const std::vector<Comparison>& comparisons, const Summary& summary) {
  using Align = Table::Align;
  Table table({{"id"},
               {"metric"},
               {"predicted", Align::kRight},
               {"measured", Align::kRight},
               {"error", Align::kRight},
               {"note"}});
  for (const Comparison& c : comparisons) {
    const std::string unit = find_metric(c.point->row.metric)->unit;
    const bool has = c.reason.empty();
    table.add_row({c.point->row.id, c.point->row.metric, has ? format_si(c.predicted, unit) : "-",
                   format_si(c.point->measured, unit), has ? percent(c.error) : "-",
                   has ? (c.ok() ? "" : "outside its tolerance") : c.reason});
  }
  table.print(std::cout);
  std::cout << comparisons.size() << " rows, mean absolute error "
            << percent(summary.mean_absolute).substr(1);
  if (summary.worst != nullptr) {
    std::cout << ", worst " << percent(summary.worst->error) << " (" << summary.worst->point->row.id
              << ")";
  }
  std::cout << ", " << summary.off << " outside their tolerance\n";
}

nlohmann::ordered_json report(const std::vector<Comparison>& comparisons, const Summary& summary) {
  nlohmann::ordered_json entries = nlohmann::ordered_json::array();
  for (const Comparison& c : comparisons) {
    const bool has = c.reason.empty();
    entries.push_back({{"id", c.point->row.id},
                       {"metric", c.point->row.metric},
                       {"unit", find_metric(c.point->row.metric)->unit},
                       {"predicted", has ? nlohmann::ordered_json(c.predicted) : nullptr},
                       {"measured", c.point->measured},
                       {"error", has ? nlohmann::ordered_json(c.error) : nullptr},
                       {"provenance", c.provenance},
                       {"source", c.point->row.source},
                       {"reason", c.reason}});
  }
  return {{"schema", "orrery.validation/1"},
          {"entries", std::move(entries)},
          {"mean_absolute_error", summary.mean_absolute},
          {"worst", summary.worst != nullptr ? nlohmann::ordered_json(summary.worst->point->row.id)
                                             : nullptr}};
}

}  // namespace

ExitCode validate_published_command(const PublishedArguments& arguments) {
  std::vector<PublishedPoint> points;
  for (const std::string& file : arguments.files) {
    for (PublishedPoint& point : load_published(file)) points.push_back(std::move(point));
  }
  std::vector<Comparison> comparisons;
  {
    Progress progress("rows", points.size());
    for (const PublishedPoint& point : points) {
      comparisons.push_back(compare(point));
      progress.step(point.row.id);
    }
  }
  const Summary summary = summarize(comparisons);
  if (arguments.json) {
    std::cout << report(comparisons, summary).dump(2) << "\n";
  } else {
    print(comparisons, summary);
  }
  return summary.off > 0 ? ExitCode::kPartial : ExitCode::kOk;
}

}  // namespace orrery
