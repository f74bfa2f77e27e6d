// SPDX-License-Identifier: Apache-2.0
#include "models/transfers/bulk.h"

#include <algorithm>
#include <map>
#include <vector>

#include "models/transfers/protocols.h"
#include "sim/machine/system_config.h"

namespace orrery {
namespace {

/// Part of its bytes that a collective sums where they arrive.
double summed_part(TransferKind kind) {
  if (kind == TransferKind::kAllReduce) return 0.5;  // a reduce-scatter, then an all-gather
  return is_any(kind, {TransferKind::kReduceScatter, TransferKind::kReduce}) ? 1 : 0;
}

/// Others in its node of the rank that has most of them.
int peers_in_node(const Transfer& transfer, const RankLayout& layout) {
  int most = 1;
  for (const std::vector<int>& group : transfer.groups) {
    std::map<int, int> members;
    for (const int rank : group) most = std::max(most, ++members[layout.node(rank)]);
  }
  return most - 1;
}

}  // namespace

BulkPrice::BulkPrice(const SystemConfig& system)
    : bulk_(*system.scale_up.bulk), scale_up_efficiency_(system.scale_up.efficiency.value) {}

bool BulkPrice::serves(const Transfer& transfer, const RankLayout& layout) const {
  // What has something else for each other rank is messages to a library.
  if (traffic_class({}, transfer.kind) == TrafficClass::kMessages) return false;
  if (transfer.bytes < bulk_.from) return false;
  return std::all_of(transfer.groups.begin(), transfer.groups.end(), [&](const auto& group) {
    return std::all_of(group.begin(), group.end(), [&](int rank) {
      return layout.system(rank) == layout.system(group.front());
    });
  });
}

Seconds BulkPrice::start(const Transfer& transfer, const RankLayout& layout) const {
  return bulk_.start.value + bulk_.peer.value * peers_in_node(transfer, layout);
}

double BulkPrice::load(TransferKind kind) const {
  const double summed = summed_part(kind);
  const double time = summed / bulk_.sum_efficiency.value + (1 - summed) / bulk_.efficiency.value;
  return scale_up_efficiency_ * time;
}

}  // namespace orrery
