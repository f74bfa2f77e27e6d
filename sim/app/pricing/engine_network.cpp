// SPDX-License-Identifier: Apache-2.0
#include "sim/app/pricing/engine_network.h"

#include <algorithm>
#include <utility>

namespace orrery {

EngineNetwork::EngineNetwork(const Machine& machine, Bytes most)
    : library_(machine.system(), machine.nodes()),
      one_shot_(machine.system(), machine.nodes(), "one_shot"),
      two_shot_(machine.system(), machine.nodes(), "direct"),
      most_(most),
      system_ranks_(machine.system().ranks()) {}

bool EngineNetwork::is_own(const Transfer& transfer) const {
  if (transfer.kind != TransferKind::kAllReduce || transfer.bytes > most_) return false;
  return std::all_of(transfer.groups.begin(), transfer.groups.end(), [&](const auto& group) {
    const auto [least, most] = std::minmax_element(group.begin(), group.end());
    return group.size() > 1 && *least / system_ranks_ == *most / system_ranks_;
  });
}

PricedTransfer EngineNetwork::price(const Transfer& transfer) const {
  PricedTransfer best = library_.price(transfer);
  if (!is_own(transfer)) return best;
  for (const FlowModel* own : {&one_shot_, &two_shot_}) {
    PricedTransfer priced = own->price(transfer);
    if (priced.isolated_time < best.isolated_time) best = std::move(priced);
  }
  return best;
}

}  // namespace orrery
