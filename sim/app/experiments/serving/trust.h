// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "sim/app/experiments/core/intervals.h"
#include "sim/app/experiments/serving/fleet.h"
#include "sim/results/run_record.h"

namespace orrery {

/// What the iterations of a served workload rest on, and how much longer they may take.
///
/// First order: what a group's iterations take longer, those without prompts and those with some,
/// is what their mean shapes do by the draws of their kernels and collectives, and of what steps
/// have beside them. Requests are served again with all of them at their p10, and at their p90: as
/// if all erred together, which is the widest that they can. The work of hosts does not vary.
struct ServingTrust {
  ProvenanceTime time;
  std::array<std::vector<Slowness>, 2> bounds;  ///< slowness of each group, at p10 and at p90

  /// @param instances those that have served, of all groups in their order
  ServingTrust(const ServingFleet& fleet, const std::vector<ServingGroup>& groups,
               const std::vector<Instance>& instances, std::int64_t seed);
};
/// Gives to the metrics of a run that those of the runs at its bounds differ from an interval that
/// has all three.
void add_bounds(RunRecord& record, const std::array<RunRecord, 2>& bounds);

/// Widens the intervals of times to first token by what they are unsure of where iterations take
/// what they do: what lies between a client and the engine. Independent of these, so squares add.
void widen_first_tokens(RunRecord& record, bool has_experts);

/// Widens the intervals of energy, power and tokens per joule by what power is unsure of where
/// times are right (power.uncertainty): as independent of the times, so squares add. The caps of
/// all accelerators bound their power; hosts are taken as known.
void widen_by_power(RunRecord& record, const std::vector<ServingGroup>& groups);

/// Known errors of the groups' accelerators that concern an experiment of this kind, each once.
std::vector<std::string> known_errors(const std::vector<ServingGroup>& groups,
                                      const std::string& experiment);

}  // namespace orrery
