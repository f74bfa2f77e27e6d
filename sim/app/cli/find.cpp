// SPDX-License-Identifier: Apache-2.0
#include "sim/app/cli/find.h"

#include <fmt/core.h>
#include <iostream>
#include <nlohmann/json.hpp>
#include <set>

#include "sim/app/experiments/core/exit_codes.h"
#include "sim/app/questions/find_capacity.h"
#include "sim/units/comma_separated.h"
#include "sim/units/spelling.h"
#include "sim/units/text.h"

namespace orrery {
namespace {

/// "ttft_p99=2s,tpot_p99=50ms" as settings.
void add_bounds(const std::string& slo, std::vector<std::string>& settings) {
  std::set<std::string> named;
  for (const std::string_view word : comma_separated(slo)) {
    const std::string bound(word);
    const std::string name = bound.substr(0, bound.find_first_of("= "));
    if (!named.insert(name).second) throw UsageError("--slo has '" + name + "' twice");
    settings.push_back("serving.slo." + bound);
  }
}

Capacity capacity_of(const std::string& what) {
  if (what == "max_rate") return Capacity::kMaxRate;
  if (what == "instances") return Capacity::kInstances;
  throw UsageError(fmt::format("--find {}: there are max_rate and instances{}", what,
                               did_you_mean(nearest_name(what, {"max_rate", "instances"}))));
}

/// The answer of a search, and how sure it is.
struct Found {
  std::string path, bounds;
  CapacityAnswer answer;               ///< answer with the first seed
  int seeds = 1;                       ///< seeds that the answer was tried with
  int held = 0;                        ///< seeds with which the answer of the first holds
  std::optional<double> for_all = {};  ///< value that holds with all of them
};

std::string value_text(const Found& found, double value) {
  return print_number(value) + (found.path.ends_with("rate") ? " /s" : "");
}

ToldRows told(const Found& found) {
  ToldRows rows{Table::titled(
      found.path + " | >p99 TTFT | >p99 TPOT | >p99 whole | >goodput | >requests | holds")};
  for (const CapacityTrial& t : found.answer.trials)
    rows.add(
        {value_text(found, t.value), format_si(t.ttft_p99_ms, "ms"), format_si(t.tpot_p99_ms, "ms"),
         format_si(t.e2el_p99_ms, "ms"), format_si(t.goodput, "1/s"), print_number(t.requests),
         t.holds() ? "yes" : "no: " + t.fails},
        {{"value", t.value},
         {"p99_ttft_ms", t.ttft_p99_ms},
         {"p99_tpot_ms", t.tpot_p99_ms},
         {"p99_e2el_ms", t.e2el_p99_ms},
         {"request_goodput", t.goodput},
         {"requests", t.requests},
         {"load", t.load},
         {"saturated", t.load == "saturated"},
         {"fails", t.fails}});
  return rows;
}

std::string line_of(const Found& found) {
  if (!found.answer.value) {
    const CapacityTrial& last = found.answer.trials.back();
    return fmt::format("nothing that was tried keeps {}: at {} not {}\n", found.bounds,
                       value_text(found, last.value), last.fails);
  }
  const std::string first = value_text(found, *found.answer.value);
  const std::string all =
      found.for_all
          ? fmt::format("the {} {} that keeps {} with all {} seeds: {}",
                        found.path.ends_with("replicas") ? "fewest" : "highest", found.path,
                        found.bounds, found.seeds, value_text(found, *found.for_all))
          : fmt::format("no {} near {} keeps {} with all {} seeds", found.path, first, found.bounds,
                        found.seeds);
  return fmt::format("{}\nwith the first seed alone: {}, which holds with {} of {}\n", all, first,
                     found.held, found.seeds);
}

}  // namespace

Answer find_answer(const std::string& file, std::vector<std::string> settings,
                   const std::string& what, const std::string& slo) {
  add_bounds(slo, settings);
  CapacitySearch search(file, std::move(settings), capacity_of(what));
  Found found{search.path(), search.bounds(), {}, search.seeds()};
  found.answer = search.find([&](const CapacityTrial& trial) {
    std::cerr << search.path() << " " << print_number(trial.value) << ": "
              << (trial.holds() ? "holds" : trial.fails) << "\n";
  });
  if (found.answer.value) {
    found.held = search.seeds_that_hold(*found.answer.value);
    found.for_all = search.value_for_all_seeds(*found.answer.value);
  }
  ToldRows trials = told(found);
  return {.parts = {std::move(trials.table), "\n" + line_of(found)},
          .json = {{"schema", "orrery.find/1"},
                   {"path", found.path},
                   {"bounds", found.bounds},
                   {"value", or_null(found.for_all)},
                   {"seeds", found.seeds},
                   {"value_for_first_seed", or_null(found.answer.value)},
                   {"seeds_that_hold", found.held},
                   {"value_for_all_seeds", or_null(found.for_all)},
                   {"trials", std::move(trials.json)}},
          .code = found.answer.value ? ExitCode::kOk : ExitCode::kInfeasible};
}

}  // namespace orrery
