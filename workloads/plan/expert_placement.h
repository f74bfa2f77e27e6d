// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "workloads/models/llm_config.h"

namespace orrery {

/// Who decides which rank holds which expert.
enum class ExpertBalancing : std::uint8_t {
  kNone,  ///< experts lie in order
  kEplb   ///< DeepSeek's expert parallel load balancer, in its global form
};

/// Slots of a rank whose experts are picked equally often.
struct EqualSlots {
  double count = 0;
  double chance = 0;  ///< probability that a token goes to one of these slots, the same for each
  double share = 0;   ///< share of the rank's token copies that go to all of them

  /// Those that at least one of so many tokens goes to, expected.
  double active(double tokens) const;
};

/// The rank of an expert parallel group that gets the most token copies: the others wait for it.
struct HeaviestRank {
  double skew = 1;  ///< token copies of the rank over the mean of all
  std::vector<EqualSlots> slots;
  std::int64_t placed = 0;  ///< experts with their replicas on all ranks
  bool in_order = true;     ///< experts of a routing group lie next to each other

  double active(double tokens) const;  ///< sum over all slots
};

/// Loads above which an expert would be picked twice by one token are cut to that: of `picked`
/// different experts a token, none has more than 1 / picked of all copies, and what it would have
/// more goes to the others in proportion.
/// @param loads of each expert, in any unit; at least `picked` of them above 0
std::vector<double> attainable_loads(std::vector<double> loads, std::int64_t picked);

/// Replicas of each expert as EPLB gives them out (github.com/deepseek-ai/EPLB): `redundant` times
/// one more to the expert with the largest load a replica, the first of equals.
std::vector<std::int64_t> eplb_replicas(const std::vector<double>& loads, std::int64_t redundant);

/// The rank of each load as EPLB packs them: heaviest first, each to the lightest rank that has
/// room, the first of equals. Ranks take equal numbers of loads.
std::vector<int> eplb_packing(const std::vector<double>& loads, int ranks);

/// @param loads of each expert; `redundant` replicas with them divide by `ep`
HeaviestRank heaviest_rank(const MoeConfig& moe, int ep, const std::vector<double>& loads,
                           std::int64_t redundant, ExpertBalancing balancing);

/// Expert copies that one of `ep` ranks holds: ceil((experts + redundant) / ep). Where ep does not
/// divide, the slots left over hold copies that balance the load, as DeepSeek's EPLB places them.
std::int64_t expert_slots(const MoeConfig& moe, int ep);

/// Slots of one rank that get a token, of `tokens` per rank, expected under uniform routing of
/// every token to experts_per_token different slots of all ep * expert_slots.
double expected_active_slots(const MoeConfig& moe, int ep, double tokens);

}  // namespace orrery
