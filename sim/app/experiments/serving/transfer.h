// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "sim/app/experiments/serving/fleet.h"
#include "sim/serving/handover.h"

namespace orrery {

/// Time before what is read from host memory begins to come; an estimate.
inline constexpr double kHostLatency = 10e-6;

/// The end of the fabric that each replica of the groups sends and receives keys and values by, in
/// the order of ServingFleet::instances().
/// @param memory of each group
std::vector<KvPort> kv_ports(const LlmConfig& llm, const ServingConfig& serving,
                             const std::vector<ServingMemory>& memory);

/// The tiers of a data parallel rank: its part of those of the replica.
/// @param memory of the group
std::vector<KvTierRules> kv_tiers(const ServingGroup& group, const ServingMemory& memory);

/// @throws config::KeyError for roles that leave prompts or answers to nobody, and for caches that
/// cannot go from one group to another, below "serving"
void require_transfers(const ServingConfig& serving);

/// @throws config::KeyError for tiers that nothing goes to, or that no link leads to
void require_tiers(const ServingConfig& serving);

}  // namespace orrery
