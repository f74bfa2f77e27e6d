// SPDX-License-Identifier: Apache-2.0
#include "sim/app/questions/sweep_report.h"

#include <fmt/core.h>
#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "sim/app/questions/points/front.h"
#include "sim/app/questions/points/shown_points.h"
#include "sim/app/sweeps/plan/plan_cursor.h"
#include "sim/app/sweeps/search/proposal.h"
#include "sim/results/metric_table.h"
#include "sim/units/comma_separated.h"
#include "sim/units/text.h"

namespace orrery {
namespace {

using Json = nlohmann::ordered_json;
using Columns = std::vector<std::vector<double>>;

/// Rows of the table for people.
constexpr std::size_t kMostRows = 60;

/// Evaluated points that keep their limits, with their objectives as columns.
struct Found {
  std::vector<std::size_t> evaluated;  ///< index of each in the search's list
  Columns objectives;
  std::vector<std::size_t> front;  ///< indices in the above, by the first objective

  explicit Found(const SearchResults& results, std::size_t count) : objectives(count) {
    for (std::size_t i = 0; i < results.evaluated.size(); ++i) {
      const Score& score = results.evaluated[i].score;
      if (score.violation > 0) continue;
      evaluated.push_back(i);
      for (std::size_t k = 0; k < count; ++k) objectives[k].push_back(score.objectives[k]);
    }
    front = pareto_front(objectives);
    std::ranges::stable_sort(front, [this](std::size_t a, std::size_t b) {
      return objectives[0][a] < objectives[0][b];
    });
  }

  /// What is worse than the front by a tenth of its range in each objective.
  std::vector<double> reference() const {
    std::vector<double> worst;
    for (const auto& column : objectives) {
      double low = column[front.front()], high = low;
      for (const std::size_t i : front) {
        low = std::min(low, column[i]);
        high = std::max(high, column[i]);
      }
      worst.push_back(high + (high > low ? 0.1 * (high - low) : 1));
    }
    return worst;
  }

  /// Hypervolume of those of the first `count` points of the search.
  double volume_of_first(std::size_t count) const {
    const auto end = std::ranges::lower_bound(evaluated, count);
    Columns first = objectives;
    for (auto& column : first) column.resize(static_cast<std::size_t>(end - evaluated.begin()));
    return hypervolume(first, reference());
  }
};

double as_written(double value, const ObjectiveConfig& objective) {
  return objective.maximize.empty() ? value : -value;
}

std::string unit_of(const ObjectiveConfig& objective) {
  const MetricInfo* metric = find_metric(objective.name());
  return metric == nullptr || metric->unit == "1" ? "" : metric->unit;
}

/// Shares of the final hypervolume after an eighth, a quarter, a half and all of the evaluations.
std::vector<std::pair<std::size_t, double>> growth_of(const Found& found, std::size_t evaluated) {
  std::vector<std::pair<std::size_t, double>> growth;
  const double all = found.volume_of_first(evaluated);
  for (const std::size_t part : {8U, 4U, 2U, 1U}) {
    const std::size_t count = evaluated / part;
    if (count > 0 && all > 0) growth.emplace_back(count, found.volume_of_first(count) / all);
  }
  return growth;
}

/// Adds a point of the front, for people and for programs.
void add_point(const Sweep& sweep, PlanCursor& cursor, const Evaluated& evaluated,
               const std::vector<ObjectiveConfig>& objectives, ToldRows& front) {
  cursor.seek(evaluated.place);
  const SweepPoint point = cursor.point();
  const std::string identity = cursor.identity();
  Json json = point_json(sweep, point, identity);
  const std::string axes = Sweep::axes(point);
  std::vector<std::string> cells = {axes.empty()             ? *point.name
                                    : sweep.rows.size() == 1 ? axes
                                                             : *point.name + ", " + axes};
  for (std::size_t i = 0; i < objectives.size(); ++i) {
    const double value = as_written(evaluated.score.objectives[i], objectives[i]);
    json["objectives"][objectives[i].name()] = value;
    cells.push_back(value_text(value, unit_of(objectives[i])));
  }
  cells.push_back(short_identity(identity));
  front.json.push_back(std::move(json));
  if (front.table.rows().size() < kMostRows) front.table.add_row(std::move(cells));
}

Json levels_json(const SearchResults& results) {
  Json levels = Json::array();
  for (const SearchLevel& level : results.levels)
    levels.push_back({{"fidelity", level.fidelity.empty() ? Json(nullptr) : Json(level.fidelity)},
                      {"points", level.from_store + level.simulated}});
  return levels;
}

std::string pareto_command(const std::vector<ObjectiveConfig>& objectives,
                           const SearchResults& results, const std::string& store) {
  std::string text = "orrery pareto " + store;
  for (const ObjectiveConfig& o : objectives)
    text += (o.maximize.empty() ? " --minimize " : " --maximize ") + o.name();
  const std::string& fidelity = results.levels.back().fidelity;
  return fidelity.empty() ? text : fmt::format("{} --where \"fidelity == {}\"", text, fidelity);
}

}  // namespace

std::string counts_of(const SearchResults& results, const Sweep& sweep) {
  std::string text = fmt::format("{} points of {} places evaluated", results.evaluated.size(),
                                 print_grouped(static_cast<double>(sweep.places())));
  for (const SearchLevel& level : results.levels)
    text += fmt::format("{}: {} read from the store, {} simulated",
                        level.fidelity.empty() ? "" : "; " + level.fidelity, level.from_store,
                        level.simulated);
  if (results.begun_from > 0)
    text += fmt::format("; begun with the best {} of the store", results.begun_from);
  text += "; " + format_si(results.seconds, "s");
  if (results.failed > 0) text += fmt::format(", {} FAILED", results.failed);
  if (results.exhausted) text += "; there are no other points";
  if (!results.stopped.empty()) text += "; stopped: " + results.stopped;
  return text;
}

Answer search_report(const Sweep& sweep, const SearchConfig& config, const SearchResults& results,
                     const SweepFiles& files) {
  const std::vector<ObjectiveConfig> objectives = search_objectives(sweep);
  const Found found(results, objectives.size());
  std::vector<Table::Column> titles = {{"point"}};
  for (const ObjectiveConfig& o : objectives) titles.push_back({o.name(), Table::Align::kRight});
  titles.push_back({"identity"});
  ToldRows front{Table(std::move(titles))};
  Json growth = Json::array();
  PlanCursor cursor(sweep);
  for (const std::size_t i : found.front)
    add_point(sweep, cursor, results.evaluated[found.evaluated[i]], objectives, front);
  std::string lines;
  if (!found.front.empty()) {
    std::vector<std::string> shares;
    for (const auto& [count, share] : growth_of(found, results.evaluated.size())) {
      growth.push_back({{"evaluations", count}, {"share", share}});
      shares.push_back(fmt::format("{} after {}", format_percent(share), count));
    }
    lines = fmt::format("hypervolume of this front: {} evaluations\n", comma_joined(shares));
  }
  Answer answer;
  answer.add(sweep.config.name + ": points that no other one found is better than in everything\n");
  if (!front.table.empty()) answer.add(std::move(front.table));
  answer.add(fmt::format("{} points on the front\n{}{}\nevery point is in {}: {}\n",
                         found.front.size(), lines, counts_of(results, sweep), files.store,
                         pareto_command(objectives, results, files.store)));
  answer.json = {{"schema", "orrery.sweep_search/1"},
                 {"sweep", sweep.config.name},
                 {"store", files.store},
                 {"algorithm", config.algorithm == SearchMethod::kNsga2 ? "nsga2" : "random"},
                 {"seed", config.seed},
                 {"population", config.population},
                 {"places", sweep.places()},
                 {"begun_from", results.begun_from},
                 {"evaluations", results.evaluated.size()},
                 {"exhausted", results.exhausted},
                 {"failed", results.failed},
                 {"levels", levels_json(results)},
                 {"front", std::move(front.json)},
                 {"hypervolume", std::move(growth)}};
  return answer;
}

}  // namespace orrery
