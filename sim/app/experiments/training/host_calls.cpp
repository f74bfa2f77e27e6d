// SPDX-License-Identifier: Apache-2.0
#include "sim/app/experiments/training/host_calls.h"

#include <algorithm>

namespace orrery {
namespace {

/// Whether all groups stay inside their system.
bool is_inside(const Transfer& transfer, int ranks) {
  return std::all_of(transfer.groups.begin(), transfer.groups.end(), [&](const auto& group) {
    return std::all_of(group.begin(), group.end(),
                       [&](int rank) { return rank / ranks == group.front() / ranks; });
  });
}

}  // namespace

void call_from_host(const TrainingSoftware& software, int ranks, const Program& program,
                    PricedProgram& priced) {
  for (std::size_t i = 0; i < program.transfers.size(); ++i) {
    const Transfer& transfer = program.transfers[i];
    if (transfer.kind != TransferKind::kAllReduce || !is_inside(transfer, ranks)) continue;
    const Seconds delay = software.call_delay(transfer.bytes);
    priced.transfers[i].isolated_time += delay;
    priced.transfers[i].cost.latency += to_picoseconds(delay);
    priced.costs.transfers[i].latency += to_picoseconds(delay);
  }
}

}  // namespace orrery
