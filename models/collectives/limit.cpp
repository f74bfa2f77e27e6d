// SPDX-License-Identifier: Apache-2.0
#include "models/collectives/limit.h"

#include <algorithm>

#include "models/collectives/channels.h"
#include "models/collectives/expert_reach.h"
#include "sim/machine/system_config.h"

namespace orrery {
namespace {

/// A part of the group that its ports join to the rest.
struct Part {
  double members = 1;
  double parts = 1;  ///< in all
  bool has_root = true;
  bool reduced_by_switches = false;
};

/// One copy of every token of the part's members to each other part that needs it.
Bytes token_bytes_outside(const Collective& collective, const Part& part) {
  const ExpertRouting& routing = *collective.routing;
  const double n = collective.size();
  const double slots = std::max<double>(routing.experts, n);
  const double needed = reach(routing, {0, part.members / n * slots, slots});
  const double others = (n - part.members) / part.members;
  return collective.bytes / routing.top_k * (part.members * others * needed);
}

Bytes least_bytes(const Collective& collective, const Part& part) {
  const double n = collective.size();
  const double outside = (n - part.members) / n;
  switch (collective.kind) {
    case TransferKind::kAllReduce:
      return collective.bytes * (part.reduced_by_switches ? 1 : 2 * (part.parts - 1) / part.parts);
    case TransferKind::kAllGather:
    case TransferKind::kReduceScatter:
      return collective.bytes * outside;
    case TransferKind::kAllToAll:
      return collective.bytes * (part.members * outside);
    case TransferKind::kGather:
    case TransferKind::kScatter:
      return collective.bytes * (part.has_root ? outside : 0);
    case TransferKind::kBroadcast:
    case TransferKind::kReduce:
    case TransferKind::kSendReceive:
      return collective.bytes;
    case TransferKind::kDispatch:
    case TransferKind::kCombine:
      return token_bytes_outside(collective, part);
    case TransferKind::kBarrier:
      break;
  }
  return Bytes(0);
}

}  // namespace

PortRates port_rates(const SystemConfig& system) {
  const AcceleratorConfig& accelerator = system.accelerator;
  PortRates ports;
  ports.rank_outside = accelerator.scale_out.bandwidth.value / accelerator.dies;
  ports.system = ports.rank_outside * system.ranks();
  if (system.ranks() == 1) return ports;
  ports.rank_inside = accelerator.scale_up.bandwidth.value / accelerator.dies +
                      accelerator.die_to_die.value * (accelerator.dies - 1);
  return ports;
}

Seconds least_time(const Collective& collective, const PortRates& ports) {
  const bool spans = collective.spans_systems();
  const double n = collective.size();
  const Part rank{1, n, true, collective.switches_reduce || collective.systems_reduce};
  const BytesPerSecond rank_rate = ports.rank_inside + ports.rank_outside * (spans ? 1 : 0);
  Seconds least = least_bytes(collective, rank) / rank_rate;
  if (!spans) return least;
  const Channels systems(collective);
  const int root_system = collective.layout.system(collective.group.front());
  for (int s = 0; s < systems.systems(); ++s) {
    const auto some_member = static_cast<std::size_t>(systems.part(s).front());
    const bool has_root = collective.layout.system(collective.group[some_member]) == root_system;
    const Part part{static_cast<double>(systems.part_size(s)),
                    static_cast<double>(systems.systems()), has_root, collective.switches_reduce};
    least = std::max(least, least_bytes(collective, part) / ports.system);
  }
  return least;
}

}  // namespace orrery
