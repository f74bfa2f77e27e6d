// SPDX-License-Identifier: Apache-2.0
#include "sim/app/sweeps/search/beginning.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "sim/app/sweeps/plan/plan_cursor.h"
#include "sim/app/sweeps/search/proposal.h"
#include "sim/app/sweeps/search/run_search.h"
#include "sim/results/identity.h"

namespace orrery {
namespace {

/// Places that are looked up at most: a second for some fifty thousand.
constexpr std::uint64_t kMostLookedUp = 1'000'000;

/// What is searched and how; not how long, as a longer search goes on where a shorter one ended.
std::string key_of(const Sweep& sweep, const SearchConfig& config) {
  nlohmann::ordered_json written = to_json(sweep.node);
  written["search"] = {{"algorithm", static_cast<int>(config.algorithm)},
                       {"population", config.population},
                       {"seed", config.seed}};
  for (const Fidelity fidelity : config.fidelity)
    written["search"]["fidelity"].push_back(to_string(fidelity));
  return point_identity(written, {});
}

/// Results of the store that no other one is better than.
std::vector<Candidate> known_front(const Sweep& sweep, const ResultStore& store) {
  const Scorer score(sweep);
  std::vector<Candidate> front;
  for (PlanCursor cursor(sweep); !cursor.at_end(); cursor.next()) {
    if (cursor.kind() != PlaceKind::kPoint) continue;
    const auto record = store.find(cursor.identity());
    if (!record) continue;
    const Candidate known{{cursor.place()}, score(*record, cursor.case_index())};
    const auto beaten_by = [&](const Candidate& a) { return dominates(a.score, known.score); };
    const auto beats = [&](const Candidate& a) { return dominates(known.score, a.score); };
    if (known.score.violation > 0 || std::any_of(front.begin(), front.end(), beaten_by)) continue;
    front.erase(std::remove_if(front.begin(), front.end(), beats), front.end());
    front.push_back(known);
  }
  return front;
}

}  // namespace

std::vector<std::uint64_t> beginning_of(const Sweep& sweep, const SearchConfig& config,
                                        ResultStore& store) {
  SearchRow row{key_of(sweep, config), sweep.config.name, config.seed, {}};
  if (const auto begun = store.search(row.key)) return begun->begun_from;
  if (store.next_identity("") && sweep.places() <= kMostLookedUp) {
    const std::vector<Candidate> front = known_front(sweep, store);
    for (const std::size_t i : best_of(front, static_cast<std::size_t>(config.population) / 2))
      row.begun_from.push_back(front[i].genome.front());
  }
  store.begin_search(row);
  return row.begun_from;
}

}  // namespace orrery
