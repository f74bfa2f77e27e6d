// SPDX-License-Identifier: Apache-2.0
#include "sim/app/pricing/link_periods.h"

#include <algorithm>
#include <memory>
#include <set>

namespace orrery {
namespace {

/// The links as faults up to a time leave them.
std::shared_ptr<const MachineNetwork> network_at(const Machine& machine,
                                                 std::vector<FaultConfig> faults,
                                                 Picoseconds time) {
  std::erase_if(faults, [&](const FaultConfig& fault) { return to_picoseconds(fault.at) > time; });
  std::stable_sort(faults.begin(), faults.end(),
                   [](const FaultConfig& a, const FaultConfig& b) { return a.at < b.at; });
  for (FaultConfig& fault : faults) fault.at = Seconds();
  return std::make_shared<const MachineNetwork>(machine, faults);
}

}  // namespace

std::vector<LinkPeriod> link_periods(const Machine& machine, const std::vector<FaultConfig>& faults,
                                     const FlowModel& start) {
  std::set<Picoseconds> times;
  for (const FaultConfig& fault : faults) times.insert(to_picoseconds(fault.at));
  std::vector<LinkPeriod> periods;
  if (times.empty()) return periods;
  // Before the first fault too, since links that are down then had their capacity before.
  const auto at_start = [&start](const Transfer& transfer) { return start.cost(transfer); };
  periods.push_back({0, start.capacities(), at_start});
  for (const Picoseconds time : times) {
    if (time == 0) continue;
    const std::shared_ptr<const MachineNetwork> network = network_at(machine, faults, time);
    const auto cost = [&start, network](const Transfer& transfer) {
      const PricedTransfer taken = start.price(transfer);
      TransferCost now = network->start().price_as(transfer, taken).cost;
      now.latency = taken.cost.latency;
      return now;
    };
    periods.push_back({time, network->start().capacities(), cost});
  }
  return periods;
}

}  // namespace orrery
