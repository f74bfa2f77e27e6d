// SPDX-License-Identifier: Apache-2.0
#include "sim/app/sweeps/search/proposal.h"

#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "sim/app/sweeps/plan/plan_cursor.h"
#include "sim/app/sweeps/search/beginning.h"
#include "sim/app/sweeps/search/run_search.h"
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

}  // namespace orrery
