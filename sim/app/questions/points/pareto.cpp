// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <utility>

#include "sim/app/experiments/core/exit_codes.h"
#include "sim/app/questions/base/question.h"
#include "sim/app/questions/points/front.h"
#include "sim/app/questions/points/shown_points.h"
#include "sim/units/comma_separated.h"

namespace orrery {
namespace {

/// Rows of the points that have all objectives, by group.
using Groups = std::map<std::string, std::vector<std::size_t>>;

struct ParetoQuestion {
  StoreChoice choice;
  std::vector<std::string> maximize, minimize;
  std::string by, picked;
  Quantile quantile;

  void take(Options& options) {
    choice.take(options);
    options.repeatable(
        "--maximize", maximize,
        "metric, quantile of one or number of the configuration that is better where "
        "it is more; repeatable");
    options.repeatable(
        "--minimize", minimize,
        "metric, quantile or number of the configuration that is better where it is less; "
        "repeatable");
    options.examples(
        {"pareto sweep.db --maximize tokens_per_s_per_user --maximize tokens_per_s_per_accelerator",
         "pareto sweep.db --minimize step_time_s --minimize energy_j --where \"peak_memory_bytes "
         "<= "
         "80 GB\" --by system.system"});
    quantile.take(options);
    take_by(options, by, "a front of its own");
    options.columns(picked);
  }

  Answer answer() const {
    const std::vector<Objective> objectives = objectives_of(maximize, minimize);
    if (objectives.empty())
      throw UsageError(
          "a front needs an objective, or several: `pareto STORE --maximize tokens_per_s_per_user "
          "--maximize tokens_per_s_per_accelerator`");
    const StoredPoints stored(choice);
    const std::vector<PointColumn> compared = compared_numbers(stored, objectives, quantile);
    std::size_t without = 0;
    const Groups groups = groups_of(stored, compared, without);
    ShownPoints shown;
    shown.by = by;
    for (const std::string_view name : comma_separated(picked)) shown.columns.emplace_back(name);
    for (const auto& [group, rows] : groups) add_front(rows, compared, objectives, group, shown);
    constexpr std::size_t kMostRows = 60;
    Answer answer = shown_points(stored, shown, objectives, kMostRows);
    answer.add(considered(stored, shown.rows.size(), "on the front") + lacking(without) +
               (objectives.size() > 1 ? "draw it: " + command(objectives) + "\n" : ""));
    nlohmann::ordered_json json = {{"schema", "orrery.pareto/1"},
                                   {"store", choice.store},
                                   {"where", choice.where},
                                   {"by", by},
                                   {"at", quantile.at}};
    json.update(answer.json);
    answer.json = std::move(json);
    return answer;
  }

 private:
  Groups groups_of(const StoredPoints& stored, const std::vector<PointColumn>& columns,
                   std::size_t& without) const {
    Groups groups;
    const auto group_of = groups_by(stored, by);
    for (const std::size_t row : stored.rows()) {
      const bool has = std::all_of(columns.begin(), columns.end(),
                                   [row](const PointColumn& column) { return column.has(row); });
      if (!has) {
        ++without;
      } else {
        groups[group_of(row)].push_back(row);
      }
    }
    return groups;
  }

  static void add_front(const std::vector<std::size_t>& rows,
                        const std::vector<PointColumn>& columns,
                        const std::vector<Objective>& objectives, const std::string& group,
                        ShownPoints& shown) {
    std::vector<std::vector<double>> values(objectives.size());
    for (std::size_t i = 0; i < objectives.size(); ++i) {
      values[i].reserve(rows.size());
      for (const std::size_t row : rows)
        values[i].push_back(objectives[i].maximize ? -columns[i].numbers[row]
                                                   : columns[i].numbers[row]);
    }
    std::vector<std::size_t> front = pareto_front(values);
    std::stable_sort(front.begin(), front.end(),
                     [&](std::size_t a, std::size_t b) { return values[0][a] < values[0][b]; });
    for (const std::size_t place : front) {
      shown.rows.push_back(rows[place]);
      shown.groups.push_back(group);
    }
  }

  std::string lacking(std::size_t without) const {
    return without == 0 ? "" : std::to_string(without) + " points do not have all objectives\n";
  }

  std::string command(const std::vector<Objective>& objectives) const {
    std::string text = "scripts/plot_pareto.py " + choice.store;
    for (const Objective& objective : objectives)
      text += (objective.maximize ? " --maximize " : " --minimize ") + objective.name;
    if (!choice.where.empty()) text += " --where \"" + choice.where + "\"";
    return by.empty() ? text : text + " --by " + by;
  }
};

const RegisterQuestion<ParetoQuestion> registered_pareto(
    "pareto", "points of a store that no other one is better than in everything asked for", true);

}  // namespace
}  // namespace orrery
