// SPDX-License-Identifier: Apache-2.0
#include "models/collectives/limit.h"

#include <algorithm>
#include <map>

#include "models/collectives/expert_reach.h"
#include "sim/machine/system_config.h"

namespace orrery {
namespace {

/// A part of the group that its ports join to the rest.
struct Part {
  double members = 1;
  double parts = 1;  ///< parts of the group in all
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
  return {};
}

/// The most that leaves or enters a part of an all_to_all with parts of different sizes; a single
/// part has nothing outside.
template <class PartOf>
Bytes most_across(const Collective& collective, PartOf part_of) {
  std::map<int, Bytes> out, in;
  for (int from = 0; from < collective.size(); ++from) {
    const int source = part_of(collective.rank(from));
    for (int to = 0; to < collective.size(); ++to) {
      const int destination = part_of(collective.rank(to));
      if (source == destination) continue;
      out[source] += collective.between(from, to);
      in[destination] += collective.between(from, to);
    }
  }
  Bytes most;
  for (const auto* ways : {&out, &in})
    for (const auto& [part, bytes] : *ways) most = std::max(most, bytes);
  return most;
}

/// The slowest of the parts that `part_of` cuts the group into; 0 for a single one.
template <class PartOf>
Seconds least_time(const Collective& collective, PartOf part_of, bool reduced_by_switches,
                   BytesPerSecond rate) {
  std::map<int, int> members;
  for (const int rank : collective.group) ++members[part_of(rank)];
  Seconds least;
  if (members.size() == 1) return least;
  if (!collective.pair_bytes.empty()) return most_across(collective, part_of) / rate;
  const int root = part_of(collective.group.front());
  for (const auto& [id, count] : members) {
    const Part part{static_cast<double>(count), static_cast<double>(members.size()), id == root,
                    reduced_by_switches};
    least = std::max(least, least_bytes(collective, part) / rate);
  }
  return least;
}

}  // namespace

PortRates port_rates(const SystemConfig& system) {
  const AcceleratorConfig& accelerator = system.accelerator;
  PortRates ports;
  ports.die = accelerator.die_to_die.value * (accelerator.dies - 1);
  ports.package_inside = accelerator.scale_up.bandwidth.value;
  ports.package_outside = accelerator.scale_out.bandwidth.value;
  ports.system = ports.package_outside * system.accelerators.value /
                 static_cast<double>(system.packages_per_nic());
  return ports;
}

Seconds least_time(const Collective& collective, const PortRates& ports) {
  if (collective.bytes.base() == 0) return Seconds(0);
  const RankLayout& layout = collective.layout;
  const bool inside_reduces = collective.switches_reduce || collective.systems_reduce;
  const auto package = [&](int rank) { return layout.package(rank); };
  const auto system = [&](int rank) { return layout.system(rank); };
  const Seconds systems = least_time(collective, system, collective.switches_reduce, ports.system);
  if (systems > Seconds(0)) {
    const BytesPerSecond rate =
        ports.package_outside +
        ports.package_inside * (layout.ranks_per_system > layout.dies ? 1 : 0);
    return std::max(systems, least_time(collective, package, inside_reduces, rate));
  }
  const Seconds packages = least_time(collective, package, inside_reduces, ports.package_inside);
  if (packages > Seconds(0)) return packages;
  return least_time(
      collective, [](int rank) { return rank; }, false, ports.die);
}

}  // namespace orrery
