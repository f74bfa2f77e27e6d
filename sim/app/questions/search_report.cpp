// SPDX-License-Identifier: Apache-2.0
#include "sim/app/questions/search_report.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "sim/app/questions/points/front.h"
#include "sim/app/questions/points/shown_points.h"
#include "sim/app/questions/points/stored_points.h"
#include "sim/app/sweeps/plan/plan_cursor.h"
#include "sim/app/sweeps/search/proposal.h"
#include "sim/results/metric_table.h"
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
    std::stable_sort(front.begin(), front.end(), [this](std::size_t a, std::size_t b) {
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
    const auto end = std::lower_bound(evaluated.begin(), evaluated.end(), count);
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

/// A point of the front, for people and for programs.
class FrontRow {
 public:
  FrontRow(const Sweep& sweep, PlanCursor& cursor, const Evaluated& evaluated,
           const std::vector<ObjectiveConfig>& objectives)
      : objectives_(objectives), score_(evaluated.score) {
    cursor.seek(evaluated.place);
    const SweepPoint point = cursor.point();
    identity_ = cursor.identity();
    json_ = point_json(sweep, point, identity_);
    for (std::size_t i = 0; i < objectives.size(); ++i)
      json_["objectives"][objectives[i].name()] = as_written(score_.objectives[i], objectives[i]);
    const std::string axes = Sweep::axes(point);
    name_ = axes.empty() ? *point.name : sweep.rows.size() == 1 ? axes : *point.name + ", " + axes;
  }

  std::vector<std::string> cells() const {
    std::vector<std::string> cells = {name_};
    for (std::size_t i = 0; i < objectives_.size(); ++i)
      cells.push_back(
          value_text(as_written(score_.objectives[i], objectives_[i]), unit_of(objectives_[i])));
    cells.push_back(short_identity(identity_));
    return cells;
  }
  const Json& json() const { return json_; }

 private:
  const std::vector<ObjectiveConfig>& objectives_;
  const Score& score_;
  std::string identity_, name_;
  Json json_;
};

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
  return fidelity.empty() ? text : text + " --where \"fidelity == " + fidelity + "\"";
}

}  // namespace

std::string counts_of(const SearchResults& results, const Sweep& sweep) {
  std::string text = std::to_string(results.evaluated.size()) + " points of " +
                     print_grouped(static_cast<double>(sweep.places())) + " places evaluated";
  for (const SearchLevel& level : results.levels)
    text += (level.fidelity.empty() ? ": " : "; " + level.fidelity + ": ") +
            std::to_string(level.from_store) + " read from the store, " +
            std::to_string(level.simulated) + " simulated";
  if (results.begun_from > 0)
    text += "; begun with the best " + std::to_string(results.begun_from) + " of the store";
  text += "; " + format_si(results.seconds, "s");
  if (results.failed > 0) text += ", " + std::to_string(results.failed) + " FAILED";
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
  Table table(std::move(titles));
  Json front = Json::array(), growth = Json::array();
  PlanCursor cursor(sweep);
  for (const std::size_t i : found.front) {
    const FrontRow row(sweep, cursor, results.evaluated[found.evaluated[i]], objectives);
    front.push_back(row.json());
    if (table.rows().size() < kMostRows) table.add_row(row.cells());
  }
  std::string lines;
  if (!found.front.empty()) {
    for (const auto& [count, share] : growth_of(found, results.evaluated.size())) {
      growth.push_back({{"evaluations", count}, {"share", share}});
      lines +=
          (lines.empty() ? "" : ", ") + format_percent(share) + " after " + std::to_string(count);
    }
    lines = "hypervolume of this front: " + lines + " evaluations\n";
  }
  Answer answer;
  answer.add(sweep.config.name + ": points that no other one found is better than in everything\n");
  if (!table.empty()) answer.add(std::move(table));
  answer.add(std::to_string(found.front.size()) + " points on the front\n" + lines +
             counts_of(results, sweep) + "\n" + "every point is in " + files.store + ": " +
             pareto_command(objectives, results, files.store) + "\n");
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
                 {"front", std::move(front)},
                 {"hypervolume", std::move(growth)}};
  return answer;
}

}  // namespace orrery
