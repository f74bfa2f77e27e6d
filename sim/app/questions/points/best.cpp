// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <utility>

#include "sim/app/experiments/core/exit_codes.h"
#include "sim/app/questions/base/question.h"
#include "sim/app/questions/points/shown_points.h"
#include "sim/units/comma_separated.h"

namespace orrery {
namespace {

struct BestQuestion {
  StoreChoice choice;
  std::string maximize, minimize, by, picked;
  Quantile quantile;
  int top = 0;  ///< 0: the default

  void take(Options& options) {
    choice.take(options);
    options.option("--maximize", maximize,
                   "metric, quantile of one or number of the configuration that is better where it "
                   "is more");
    options.option(
        "--minimize", minimize,
        "metric, quantile or number of the configuration that is better where it is less");
    options.excludes("--maximize", {"--minimize"});
    options.examples({"best sweep.db --minimize step_time_s --top 20",
                      "best sweep.db --maximize tokens_per_joule --where \"parallel.tp <= 8 and "
                      "step_time_s.p90 <= 50 ms\" --csv",
                      "best sweep.db --minimize step_time_s --by system --columns "
                      "parallel.tp,step_time_s,average_power_w"});
    quantile.take(options);
    options.number("--top", top, "points to show, of each value of --by; default: 10, or 1 of each",
                   1, 1000000);
    take_by(options, by, "a best point of its own");
    options.columns(picked);
  }

  Answer answer() const {
    const bool most = !maximize.empty();
    const std::string name = most ? maximize : minimize;
    if (name.empty())
      throw UsageError("what is best? `best STORE --minimize step_time_s`, or --maximize");
    const StoredPoints stored(choice);
    const PointColumn column =
        std::move(compared_numbers(stored, {{name, most}}, quantile).front());
    ShownPoints shown = best_rows(stored, column, most);
    for (const std::string_view word : comma_separated(picked)) shown.columns.emplace_back(word);
    Answer answer = shown_points(stored, shown, {{name, most}}, 0);
    answer.add(considered(stored, shown.rows.size(), "best"));
    nlohmann::ordered_json json = {{"schema", "orrery.best/1"},
                                   {"store", choice.store},
                                   {"where", choice.where},
                                   {"by", by},
                                   {"at", quantile.at}};
    json.update(answer.json);
    answer.json = std::move(json);
    return answer;
  }

 private:
  /// The best rows, each group's together and the group with the best point first.
  ShownPoints best_rows(const StoredPoints& stored, const PointColumn& column, bool most) const {
    const auto group_of = groups_by(stored, by);
    std::map<std::string, std::vector<std::size_t>> groups;
    for (const std::size_t row : stored.rows())
      if (column.has(row)) groups[group_of(row)].push_back(row);
    const auto better = [&](std::size_t a, std::size_t b) {
      const double x = column.numbers[a], y = column.numbers[b];
      if (x != y) return most ? x > y : x < y;
      return a < b;
    };
    const int of_each = top > 0 ? top : by.empty() ? 10 : 1;
    std::vector<std::pair<std::string, std::vector<std::size_t>>> ranked;
    for (auto& [group, rows] : groups) {
      const auto count = std::min(rows.size(), static_cast<std::size_t>(of_each));
      std::partial_sort(rows.begin(), rows.begin() + static_cast<std::ptrdiff_t>(count), rows.end(),
                        better);
      rows.resize(count);
      ranked.emplace_back(group, std::move(rows));
    }
    std::sort(ranked.begin(), ranked.end(), [&](const auto& a, const auto& b) {
      return better(a.second.front(), b.second.front());
    });
    ShownPoints shown;
    shown.by = by;
    for (const auto& [group, rows] : ranked) {
      shown.rows.insert(shown.rows.end(), rows.begin(), rows.end());
      shown.groups.insert(shown.groups.end(), rows.size(), group);
    }
    return shown;
  }
};

const RegisterQuestion<BestQuestion> registered_best(
    "best", "points of a store with the most or the least of a metric", true);

}  // namespace
}  // namespace orrery
