// SPDX-License-Identifier: Apache-2.0
#include <fmt/core.h>
#include <algorithm>

#include "sim/app/experiments/core/exit_codes.h"
#include "sim/app/questions/base/verb.h"
#include "sim/app/questions/points/front.h"
#include "sim/app/questions/points/shown_points.h"

namespace orrery {
namespace {

struct ParetoQuestion : PickingQuestion {
  std::vector<std::string> maximize, minimize;

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
         "<= 80 GB\" --by system.system"});
    take_at(options);
    take_by_and_columns(options, "a front of its own");
  }

  Answer answer() const {
    std::vector<Objective> objectives;
    for (const std::string& name : maximize) objectives.push_back({name, true});
    for (const std::string& name : minimize) objectives.push_back({name, false});
    if (objectives.empty())
      throw UsageError(
          "a front needs an objective, or several: `pareto STORE --maximize tokens_per_s_per_user "
          "--maximize tokens_per_s_per_accelerator`");
    const StoredPoints stored(choice);
    const std::vector<PointColumn> compared = compared_numbers(stored, objectives);
    std::size_t without = stored.rows().size();
    ShownPoints shown;
    for (const auto& [group, rows] : groups_of(stored, compared)) {
      without -= rows.size();
      add_front(rows, compared, objectives, group, shown);
    }
    constexpr std::size_t kMostRows = 60;
    Answer answer = show("orrery.pareto/1", stored, shown, objectives, kMostRows);
    answer.add(considered(stored, shown.rows.size(), "on the front") +
               (without > 0 ? fmt::format("{} points do not have all objectives\n", without) : "") +
               (objectives.size() > 1 ? "draw it: " + command(objectives) + "\n" : ""));
    return answer;
  }

 private:
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
    std::ranges::stable_sort(
        front, [&](std::size_t a, std::size_t b) { return values[0][a] < values[0][b]; });
    for (const std::size_t place : front) {
      shown.rows.push_back(rows[place]);
      shown.groups.push_back(group);
    }
  }

  std::string command(const std::vector<Objective>& objectives) const {
    std::string text = "scripts/plot_pareto.py " + choice.store;
    for (const Objective& objective : objectives)
      text += (objective.maximize ? " --maximize " : " --minimize ") + objective.name;
    if (!choice.where.empty()) text += fmt::format(" --where \"{}\"", choice.where);
    return by.empty() ? text : text + " --by " + by;
  }
};

const RegisterQuestion<ParetoQuestion> registered_pareto(
    "pareto", "points of a store that no other one is better than in everything asked for", true);

}  // namespace
}  // namespace orrery
