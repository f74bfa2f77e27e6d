// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <utility>

#include "sim/app/experiments/core/exit_codes.h"
#include "sim/app/questions/base/verb.h"
#include "sim/app/questions/points/shown_points.h"

namespace orrery {
namespace {

struct BestQuestion : PickingQuestion {
  std::string maximize, minimize;
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
    take_at(options);
    options.number("--top", top, "points to show, of each value of --by; default: 10, or 1 of each",
                   1, 1000000);
    take_by_and_columns(options, "a best point of its own");
  }

  Answer answer() const {
    const bool most = !maximize.empty();
    const std::string name = most ? maximize : minimize;
    if (name.empty())
      throw UsageError("what is best? `best STORE --minimize step_time_s`, or --maximize");
    const StoredPoints stored(choice);
    const ShownPoints shown = best_rows(stored, compared_numbers(stored, {{name, most}}), most);
    Answer answer = show("orrery.best/1", stored, shown, {{name, most}}, 0);
    answer.add(considered(stored, shown.rows.size(), "best"));
    return answer;
  }

 private:
  /// The best rows, each group's together and the group with the best point first.
  ShownPoints best_rows(const StoredPoints& stored, const std::vector<PointColumn>& compared,
                        bool most) const {
    const std::vector<double>& numbers = compared.front().numbers;
    const auto better = [&](std::size_t a, std::size_t b) {
      const double x = numbers[a], y = numbers[b];
      if (x != y) return most ? x > y : x < y;
      return a < b;
    };
    const int of_each = top > 0 ? top : by.empty() ? 10 : 1;
    std::vector<std::pair<std::string, std::vector<std::size_t>>> ranked;
    for (auto& [group, rows] : groups_of(stored, compared)) {
      const auto count = std::min(rows.size(), static_cast<std::size_t>(of_each));
      std::partial_sort(rows.begin(), rows.begin() + static_cast<std::ptrdiff_t>(count), rows.end(),
                        better);
      rows.resize(count);
      ranked.emplace_back(group, std::move(rows));
    }
    std::ranges::sort(ranked, [&](const auto& a, const auto& b) {
      return better(a.second.front(), b.second.front());
    });
    ShownPoints shown;
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
