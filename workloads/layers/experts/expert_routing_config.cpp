// SPDX-License-Identifier: Apache-2.0
#include "workloads/layers/experts/expert_routing_config.h"

#include <fmt/core.h>

#include <algorithm>
#include <charconv>
#include <cmath>

#include "sim/config/byte_source.h"
#include "sim/config/csv.h"
#include "sim/config/schema.h"
#include "sim/units/hash.h"
#include "workloads/base/limits.h"
#include "workloads/base/real.h"
#include "workloads/base/require.h"

namespace orrery {
namespace {

int popularities(const ExpertRoutingConfig& r) {
  return int(r.zipf.has_value()) + int(!r.loads.empty()) + int(!r.loads_file.empty()) +
         int(r.balancedness.has_value());
}

/// Column `load`, a row for each expert in the order of their ids.
std::vector<double> read_loads(const std::string& path) {
  config::CsvReader table(path, read_input(path));
  const std::optional<std::size_t> column = table.find("load");
  if (!column) {
    table.error(0, "a table of loads needs a column 'load'");
    table.throw_if_errors();
  }
  std::vector<double> loads;
  while (table.next()) {
    const std::string_view text = table.cell(*column);
    double load = 0;
    const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), load);
    if (code != std::errc() || end != text.data() + text.size() || !(load >= 0))
      table.error(*column, "expected a load, at least 0");
    loads.push_back(load);
  }
  table.throw_if_errors();
  return loads;
}

/// Place i, from 0, has (i + 1)^-exponent; the seed says which expert has which (Fisher and Yates).
std::vector<double> power_law(double exponent, std::int64_t experts, std::int64_t seed) {
  std::vector<double> loads;
  for (std::int64_t i = 0; i < experts; ++i) loads.push_back(std::pow(real(i + 1), -exponent));
  auto state = static_cast<std::uint64_t>(seed);
  for (std::size_t i = loads.size(); i > 1; --i) {
    const auto other = static_cast<std::size_t>(next_uniform(state) * static_cast<double>(i));
    std::swap(loads[i - 1], loads[other]);
  }
  return loads;
}

}  // namespace

const config::Schema<ExpertRoutingConfig>& ExpertRoutingConfig::schema() {
  using R = ExpertRoutingConfig;
  using config::between;
  static const auto schema =
      config::Schema<R>("expert_routing",
                        "how often tokens pick each expert, in all layers alike, and where experts "
                        "lie; without a popularity all are picked equally often")
          .optional("zipf", &R::zipf,
                    "popularity by a power law: the expert in place i gets i^-zipf; 0: all the "
                    "same",
                    between(0, 10))
          .optional("loads", &R::loads,
                    "popularity as measured: tokens of each expert, in the order of their ids",
                    config::at_least(0))
          .optional("loads_file", &R::loads_file,
                    "CSV file with a column load and a row for each expert, in the order of their "
                    "ids; plain or gzip")
          .optional("seed", &R::seed, "which expert has which place in the power law",
                    config::at_least(0))
          .optional("redundant_experts", &R::redundant_experts,
                    "replicas beside the first of each expert, for those with the most tokens; "
                    "they take memory as experts do",
                    between(0, llm_limits::kExperts))
          .optional("balancing", &R::balancing,
                    "which rank holds which expert: in order (none), or packed by load as "
                    "DeepSeek's EPLB does in its global form (eplb)")
          .optional("balancedness", &R::balancedness,
                    "token copies of the mean rank over those of the heaviest (SGLang's term), all "
                    "of whose experts get as many: in the place of a popularity",
                    between(0.01, 1))
          .check("one of zipf, loads, loads_file and balancedness says how popular experts are",
                 [](const R& r) { return popularities(r) <= 1; },
                 {"balancedness", "loads", "loads_file", "zipf"})
          .check("redundant_experts need a balancer that places them: balancing: eplb",
                 [](const R& r) {
                   return r.redundant_experts == 0 || r.balancing == ExpertBalancing::kEplb;
                 },
                 {"redundant_experts"});
  return schema;
}

ExpertRoutingConfig ExpertRoutingConfig::with_file_read() const {
  ExpertRoutingConfig read = *this;
  if (loads_file.empty()) return read;
  read.loads = read_loads(loads_file.path);
  read.loads_file = {};
  return read;
}

std::vector<double> ExpertRoutingConfig::popularity(std::int64_t experts) const {
  return loads.empty() ? power_law(zipf.value_or(0), experts, seed) : loads;
}

void require_supported(const ExpertRoutingConfig& routing, const LlmConfig& model, int ep) {
  require(model.has_moe(), "expert_routing", "model '" + model.name + "' has no experts");
  const std::int64_t experts = model.moe.experts, picked = model.moe.experts_per_token;
  const std::vector<std::string> loads = {"expert_routing.loads", "expert_routing.loads_file",
                                          "expert_routing"};
  const std::vector<double> popularity = routing.popularity(experts);
  require(static_cast<std::int64_t>(popularity.size()) == experts, loads,
          fmt::format("{} loads, but model '{}' has {} experts", popularity.size(), model.name,
                      experts));
  const auto open = std::ranges::count_if(popularity, [](double load) { return load > 0; });
  require(open >= picked, loads,
          fmt::format("a token picks {} experts, but loads above 0 are those of {}", picked, open));
  const std::int64_t all = experts + routing.redundant_experts;
  const std::int64_t missing = (ep - experts % ep) % ep;
  require(all % ep == 0, {"expert_routing.redundant_experts", "expert_routing"},
          fmt::format("{} experts and {} redundant ones do not fill the same number of slots on "
                      "each of ep = {} ranks",
                      experts, routing.redundant_experts, ep),
          {std::to_string(missing), {"any multiple of ep more than that does, too"}});
}

HeaviestRank heaviest_rank(const MoeConfig& moe, int ep, const ExpertRoutingConfig& routing) {
  HeaviestRank rank = heaviest_rank(moe, ep, routing.popularity(moe.experts),
                                    routing.redundant_experts, routing.balancing);
  if (!routing.balancedness) return rank;
  const double more = 1 / (*routing.balancedness * rank.skew);
  rank.skew *= more;
  for (EqualSlots& slots : rank.slots) slots.chance = std::min(1.0, more * slots.chance);
  return rank;
}

}  // namespace orrery
