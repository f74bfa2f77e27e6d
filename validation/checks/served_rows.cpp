// SPDX-License-Identifier: Apache-2.0
#include "validation/checks/served_rows.h"

#include <fmt/core.h>

#include <algorithm>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <variant>

namespace orrery {
namespace {

using nlohmann::ordered_json;

/// All that prices rest on: rows that have it in common share them.
std::string fleet_of(const ServingRow& row) {
  return fmt::format("{} {} {} {} {} {} {} {} {} {}", row.model, row.system, row.backend,
                     row.version, row.precision, row.gemm_quant, row.gpus, row.attention_dp,
                     row.moe_tp, row.moe_ep);
}

using Rows = std::vector<std::size_t>;  ///< indices of rows

double tokens_of(const std::vector<ServingRow>& rows, const Rows& of) {
  double tokens = 0;
  for (const std::size_t row : of)
    tokens += static_cast<double>(rows[row].concurrency * (rows[row].isl + rows[row].osl));
  return tokens;
}

/// Rows by fleet, those first that have most to do.
std::vector<Rows> by_fleet(const std::vector<ServingRow>& rows) {
  std::map<std::string, Rows> fleets;
  for (std::size_t i = 0; i < rows.size(); ++i) fleets[fleet_of(rows[i])].push_back(i);
  std::vector<Rows> groups;
  groups.reserve(fleets.size());
  for (auto& [fleet, of] : fleets) groups.push_back(std::move(of));
  std::ranges::stable_sort(groups, std::greater<>(),
                           [&](const Rows& of) { return tokens_of(rows, of); });
  return groups;
}

ordered_json json_of(const std::optional<TimeInterval>& interval) {
  return interval ? ordered_json{interval->first, interval->second} : ordered_json(nullptr);
}

std::optional<TimeInterval> interval_of(const ordered_json& ends) {
  if (ends.is_null()) return {};
  return TimeInterval{ends[0], ends[1]};
}

ordered_json json_of(const ServingComparison& c) {
  return {{"reason", c.reason},
          {"experts", c.experts},
          {"ttft", c.ttft_ms},
          {"tpot", c.tpot_ms},
          {"ttft_interval", json_of(c.ttft_interval)},
          {"tpot_interval", json_of(c.tpot_interval)}};
}

void take(const ordered_json& told, ServingComparison& comparison) {
  comparison.reason = told["reason"];
  comparison.experts = told["experts"];
  comparison.ttft_ms = told["ttft"];
  comparison.tpot_ms = told["tpot"];
  comparison.ttft_interval = interval_of(told["ttft_interval"]);
  comparison.tpot_interval = interval_of(told["tpot_interval"]);
}

/// @param of the rows that were served
void take(const PointOutcome& outcome, const Rows& of, std::vector<ServingComparison>& all) {
  if (const auto* failure = std::get_if<Failure>(&outcome.result)) {
    for (const std::size_t row : of)
      all[row].reason = failure->message.substr(0, failure->message.find('\n'));
    return;
  }
  const auto told = ordered_json::parse(std::get<std::string>(outcome.result));
  for (std::size_t i = 0; i < of.size(); ++i) take(told[i], all[of[i]]);
}

}  // namespace

std::vector<ServingComparison> compare_served(const std::vector<ServingRow>& rows,
                                              const std::string& models, const RowDone& done,
                                              std::size_t jobs) {
  ServingValidation validation(models);
  validation.learn_protocols(rows);
  const std::vector<Rows> fleets = by_fleet(rows);
  LocalWorkers workers(jobs, [&](std::size_t fleet) {
    ordered_json told = ordered_json::array();
    for (const std::size_t row : fleets[fleet])
      told.push_back(json_of(validation.compare(rows[row], Intervals::kServed)));
    return told.dump();
  });
  workers.submit({0, fleets.size()});
  std::vector<ServingComparison> comparisons(rows.size());
  for (std::size_t i = 0; i < rows.size(); ++i) comparisons[i].row = rows[i];
  for (auto outcomes = workers.poll(); !outcomes.empty(); outcomes = workers.poll()) {
    for (const PointOutcome& outcome : outcomes) {
      const Rows& of = fleets[outcome.point];
      take(outcome, of, comparisons);
      if (!done) continue;
      for (const std::size_t row : of) done(rows.size(), rows[row].id);
    }
  }
  return comparisons;
}

}  // namespace orrery
