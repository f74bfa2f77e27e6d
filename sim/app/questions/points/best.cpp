// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "sim/app/experiments/exit_codes.h"
#include "sim/app/questions/points/shown_points.h"
#include "sim/app/questions/question.h"

namespace orrery {
namespace {

struct BestQuestion {
  StoreChoice choice;
  std::string maximize, minimize;
  Quantile quantile;
  int top = 10;

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
                      "step_time_s.p90 <= 50 ms\" --csv"});
    quantile.take(options);
    options.number("--top", top, "points to show; default: 10", 1, 1000000);
  }

  Answer answer() const {
    const bool most = !maximize.empty();
    const std::string name = most ? maximize : minimize;
    if (name.empty())
      throw UsageError("what is best? `best STORE --minimize step_time_s`, or --maximize");
    const StoredPoints stored(choice);
    const PointColumn column =
        std::move(compared_numbers(stored, {{name, most}}, quantile).front());
    ShownPoints shown;
    for (const std::size_t row : stored.rows())
      if (column.has(row)) shown.rows.push_back(row);
    const auto count = std::min(shown.rows.size(), static_cast<std::size_t>(top));
    const auto better = [&](std::size_t a, std::size_t b) {
      const double x = column.numbers[a], y = column.numbers[b];
      if (x != y) return most ? x > y : x < y;
      return a < b;
    };
    std::partial_sort(shown.rows.begin(), shown.rows.begin() + static_cast<std::ptrdiff_t>(count),
                      shown.rows.end(), better);
    shown.rows.resize(count);
    Answer answer = shown_points(stored, shown, {{name, most}}, 0);
    answer.add(considered(stored, count, "best"));
    nlohmann::ordered_json json = {{"schema", "orrery.best/1"},
                                   {"store", choice.store},
                                   {"where", choice.where},
                                   {"at", quantile.at}};
    json.update(answer.json);
    answer.json = std::move(json);
    return answer;
  }
};

const RegisterQuestion<BestQuestion> registered_best(
    "best", "points of a store with the most or the least of a metric", true);

}  // namespace
}  // namespace orrery
