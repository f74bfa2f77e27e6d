// SPDX-License-Identifier: Apache-2.0
#include "sim/app/questions/describe/describe.h"

#include <fmt/core.h>
#include <array>
#include <nlohmann/json.hpp>
#include <numeric>
#include <optional>
#include <utility>

#include "models/collectives/algorithm.h"
#include "models/topologies/dimension_config.h"
#include "sim/machine/transfer_names.h"
#include "sim/results/json_table.h"
#include "sim/units/comma_separated.h"

namespace orrery {
namespace {

class NoSink final : public FlowSink {
 public:
  void add(int, int, Bytes) override {}
  void exchange(std::span<const int>, Bytes) override {}
  void reduce(std::span<const int>, Bytes) override {}
  void multicast(std::span<const int>, Bytes) override {}
};

/// What a fabric may be able to do beyond carrying messages.
enum class Ability { kNone, kReduces, kTorus, kDimensions };
constexpr std::pair<Ability, const char*> kAbilities[] = {
    {Ability::kNone, ""},
    {Ability::kReduces, "switches that reduce"},
    {Ability::kTorus, "a torus"},
    {Ability::kDimensions, "several dimensions"}};

struct Service {
  StepCount steps;
  const char* needs = "";
};

/// The example: systems of 8 ranks; as a torus 4 x 2, and as rings of 4 across rings of 2.
constexpr int kRanks = 8;
constexpr int kSystems = 4;

DimensionConfig ring_of(int size) {
  DimensionConfig ring;
  ring.size = size;
  return ring;
}

/// How the algorithm serves the example, with the least that the fabric must be able to do.
std::optional<Service> ask(const CollectiveAlgorithm& algorithm, TransferKind kind, int systems) {
  const RankLayout layout{.ranks_per_node = kRanks, .ranks_per_system = kRanks, .systems = systems};
  std::vector<int> group(static_cast<std::size_t>(layout.ranks()));
  std::iota(group.begin(), group.end(), 0);
  if (kind == TransferKind::kSendReceive) group = {group.front(), group.back()};
  const ExpertRouting routing{.experts = 256, .top_k = 8};
  for (const auto& [ability, needs] : kAbilities) {
    Collective collective{kind, Bytes(1), group, layout};
    collective.routing = &routing;
    collective.switches_reduce = collective.systems_reduce = ability == Ability::kReduces;
    if (ability == Ability::kTorus) collective.torus = {4, 2};
    const std::array<DimensionConfig, 2> rings = {ring_of(4), ring_of(2)};
    if (ability == Ability::kDimensions && systems == 1)
      collective.dimensions = {&rings.front(), &rings.back()};
    NoSink sink;
    if (algorithm.serves(collective)) return Service{algorithm.run(collective, sink), needs};
  }
  return std::nullopt;
}

std::string cell(const std::optional<Service>& service) {
  if (!service) return "-";
  const auto& [up, out] = std::pair(service->steps.scale_up, service->steps.scale_out);
  if (out == 0) return up == 0 ? "" : fmt::format("{} inside", up);
  return up == 0 ? fmt::format("{} between", out) : fmt::format("{} inside, {} between", up, out);
}

}  // namespace

std::string served_kinds(const CollectiveAlgorithm& algorithm) {
  std::vector<std::string> kinds;
  for (const auto& [kind, name] : config::EnumNames<TransferKind>::values)
    if (ask(algorithm, kind, 1) || ask(algorithm, kind, kSystems)) kinds.emplace_back(name);
  return comma_joined(kinds);
}

Answer served_steps(const CollectiveAlgorithm& algorithm) {
  Answer answer{.parts = {}, .json = nlohmann::ordered_json::array()};
  for (const auto& [kind, name] : config::EnumNames<TransferKind>::values) {
    const auto inside = ask(algorithm, kind, 1), between = ask(algorithm, kind, kSystems);
    if (!inside && !between) continue;
    answer.json.push_back({{"kind", name},
                           {"steps_in_one_system", cell(inside)},
                           {"steps_in_four_systems", cell(between)},
                           {"needs", (inside ? inside : between)->needs}});
  }
  answer.add(json_table(answer.json,
                        "serves = kind | steps in a system of 8 = steps_in_one_system | "
                        "in 4 systems of 8 = steps_in_four_systems | needs = needs"));
  if (!algorithm.automatic())
    answer.add("not among those that `auto` chooses from, unless nothing else serves\n");
  return answer;
}

}  // namespace orrery
