// SPDX-License-Identifier: Apache-2.0
#include "validation/checks/serving_targets.h"

#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <utility>

namespace orrery {
namespace {

constexpr double kSplit = 1.1;  ///< longest over shortest time of a key that is split

bool is_r1(const ServingRow& row) { return row.model.find("DeepSeek-R1") != std::string::npos; }

/// All that a row says of its run.
std::string key_of(const ServingRow& row) {
  return fmt::format("{} {} {} {} {} {} {} {} {} {} {} {} {}", row.model, row.system, row.backend,
                     row.version, row.precision, row.gemm_quant, row.isl, row.osl, row.concurrency,
                     row.gpus, row.attention_dp, row.moe_tp, row.moe_ep);
}

}  // namespace

ServingTarget serving_target(const std::string& name,
                             const std::vector<const ServingComparison*>& of) {
  constexpr double kUs = 1e3;  // us of a ms
  std::vector<Comparison> tpot, ttft;
  for (const ServingComparison* c : of) {
    tpot.push_back({c->tpot_ms * kUs, c->row.tpot_ms * kUs});
    if (c->row.tells_ttft()) ttft.push_back({c->ttft_ms * kUs, c->row.ttft_ms * kUs});
  }
  return {name, summarise(tpot), summarise(ttft)};
}

std::vector<ServingTarget> serving_targets(const std::vector<ServingComparison>& comparisons) {
  std::map<std::string, std::pair<double, double>> times;  // least and most of each key
  for (const ServingComparison& c : comparisons) {
    if (!is_r1(c.row) || c.row.tpot_ms <= 0) continue;
    const auto [entry, added] =
        times.try_emplace(key_of(c.row), std::pair(c.row.tpot_ms, c.row.tpot_ms));
    entry->second.first = std::min(entry->second.first, c.row.tpot_ms);
    entry->second.second = std::max(entry->second.second, c.row.tpot_ms);
  }
  std::vector<const ServingComparison*> dense, experts;
  std::map<std::string, std::vector<const ServingComparison*>> models;
  for (const ServingComparison& c : comparisons) {
    if (!c.reason.empty()) continue;
    if (!c.experts) dense.push_back(&c);
    if (!c.experts || c.row.version.empty()) continue;
    const auto known = times.find(key_of(c.row));
    if (known != times.end() && known->second.second > kSplit * known->second.first) continue;
    experts.push_back(&c);
    models[c.row.model].push_back(&c);
  }
  std::vector<ServingTarget> targets;
  if (!dense.empty()) targets.push_back(serving_target("dense models", dense));
  if (experts.empty()) return targets;
  targets.push_back(serving_target("experts, version known, no split keys", experts));
  for (const auto& [model, of] : models) targets.push_back(serving_target("  " + model, of));
  return targets;
}

}  // namespace orrery
