// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <vector>

#include "sim/app/pricing/machine_network.h"

namespace orrery {

/// The links of a machine from a time on, and what a transfer costs then, carried out as at the
/// start: with its algorithm, protocol and latency.
struct LinkPeriod {
  Picoseconds time = 0;
  std::vector<BytesPerSecond> capacities;  ///< 0: the link is down
  std::function<TransferCost(const Transfer&)> cost;
};

/// The periods of a run whose transfers are priced as they come, from the first fault on, by time.
/// @param start the links at the start; machine and start have to outlive the result
std::vector<LinkPeriod> link_periods(const Machine& machine, const std::vector<FaultConfig>& faults,
                                     const FlowModel& start);

}  // namespace orrery
