// SPDX-License-Identifier: Apache-2.0
#include "sim/app/sweeps/search/proposal.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "sim/app/sweeps/plan/plan_cursor.h"
#include "sim/app/sweeps/search/run_search.h"
#include "sim/results/identity.h"
#include "sim/units/sha256.h"

namespace orrery {
namespace {

/// What is known of a point; none: nothing. One whose values cannot stand together is in no store.
std::optional<Score> known_score(const PlanCursor& at, const Scorer& score,
                                 const ResultStore& store) {
  const std::string identity = at.identity();
  std::optional<RunRecord> record = store.find(told_identity(identity));
  if (!record) record = store.find(identity);
  if (record) return score(*record, at.case_index());
  if (at.whole().contradiction.empty()) return std::nullopt;
  RunRecord none;
  none.status = RunStatus::kInfeasible;
  return score(none, at.case_index());
}

}  // namespace

nlohmann::ordered_json to_json(const config::Node& value) {
  using Json = nlohmann::ordered_json;
  switch (value.kind()) {
    case config::Node::Kind::kNull:
      return nullptr;
    case config::Node::Kind::kSequence: {
      Json list = Json::array();
      for (const config::Node& item : value.items()) list.push_back(to_json(item));
      return list;
    }
    case config::Node::Kind::kMap: {
      Json map = Json::object();
      for (const auto& entry : value.entries()) map[entry.key] = to_json(entry.value);
      return map;
    }
    case config::Node::Kind::kScalar:
      break;
  }
  if (value.quoted()) return value.text();
  const Json scalar = Json::parse(value.text(), nullptr, false);
  return scalar.is_number() || scalar.is_boolean() ? scalar : Json(value.text());
}

nlohmann::ordered_json point_json(const Sweep& sweep, const SweepPoint& point,
                                  const std::string& identity) {
  nlohmann::ordered_json parameters = nlohmann::ordered_json::object();
  for (const config::Assignment& setting : point.settings)
    parameters[setting.path] = to_json(setting.value);
  return {{"point", identity},
          {"case", sweep.config.cases[point.case_index].name},
          {"variant", *point.name},
          {"parameters", std::move(parameters)}};
}

std::string told_identity(const std::string& identity) { return sha256_hex("told " + identity); }

Proposals propose(const std::vector<Sweep>& levels, const SearchConfig& config, ResultStore& store,
                  std::size_t most) {
  Proposals proposals;
  const Scorer score(levels.back());
  Search search(levels.back(), config, beginning_of(levels.back(), config, store));
  std::vector<std::unique_ptr<PlanCursor>> cursors;
  cursors.reserve(levels.size());
  for (const Sweep& level : levels) cursors.push_back(std::make_unique<PlanCursor>(level));
  while (!search.wanted().empty() && proposals.points.empty()) {
    PlanCursor& cursor = *cursors[search.level()];
    std::vector<Score> scores;
    for (const std::uint64_t place : search.wanted()) {
      cursor.seek(place);
      if (const auto known = known_score(cursor, score, store)) {
        scores.push_back(*known);
      } else if (proposals.points.size() < most) {
        proposals.points.push_back(
            point_json(levels[search.level()], cursor.point(), cursor.identity()));
      }
    }
    if (proposals.points.empty()) search.tell(scores);
  }
  proposals.evaluated = search.evaluated().size();
  proposals.at_end = search.wanted().empty();
  return proposals;
}

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
    if (known.score.violation > 0 || std::ranges::any_of(front, beaten_by)) continue;
    std::erase_if(front, beats);
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
