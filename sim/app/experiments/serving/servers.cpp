// SPDX-License-Identifier: Apache-2.0
#include "sim/app/experiments/serving/servers.h"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "sim/units/time.h"

namespace orrery {
namespace {

using Periods = std::vector<HeldPeriod>;

/// Time in which any of the periods is.
Seconds length_of_union(Periods periods) {
  std::ranges::sort(periods, {}, &HeldPeriod::begin);
  Picoseconds all = 0, covered = 0;
  for (const HeldPeriod& period : periods) {
    const Picoseconds begin = std::max(period.begin, covered);
    if (period.end > begin) all += period.end - begin;
    covered = std::max(covered, period.end);
  }
  return to_seconds(all);
}

bool share_one_system(const ServingConfig& serving) {
  return serving.disaggregated() && serving.kv_transfer.over == KvLinks::kScaleUp;
}

double accelerators_of_server(const ServingGroup& group) {
  return static_cast<double>(group.system.accelerators.value) * group.nodes;
}

/// Time for which servers of a group are held.
/// @param first position of its first replica in `held`
Seconds servers_held(const ServingGroup& group, const std::vector<Periods>& held,
                     std::size_t first) {
  const auto on_one = static_cast<std::size_t>(replicas_per_server(group));
  const auto replicas = static_cast<std::size_t>(group.replicas);
  Seconds all;
  for (std::size_t begin = 0; begin < replicas; begin += on_one) {
    Periods of_server;
    for (std::size_t i = begin; i < std::min(begin + on_one, replicas); ++i)
      of_server.insert(of_server.end(), held[first + i].begin(), held[first + i].end());
    all += length_of_union(std::move(of_server));
  }
  return all;
}

/// Adds the accelerators of the system that all groups share and nobody uses.
void charge_rest_of_system(const ServingConfig& serving, const std::vector<Periods>& held,
                           std::vector<HeldAccelerators>& groups) {
  if (std::ranges::count(serving.fleet, Unused::kIdle, &ServingGroup::unused) == 0) return;
  Periods all;
  for (const Periods& periods : held) all.insert(all.end(), periods.begin(), periods.end());
  Seconds rest = length_of_union(std::move(all)) * accelerators_of_server(serving.fleet.front());
  for (const HeldAccelerators& group : groups) rest -= group.used;
  groups.front().charged += std::max(rest, Seconds(0));
}

}  // namespace

Seconds held_time(const std::vector<HeldPeriod>& periods) {
  Picoseconds all = 0;
  for (const HeldPeriod& period : periods) all += period.end - period.begin;
  return to_seconds(all);
}

int replicas_per_server(const ServingGroup& group) {
  const int ranks = group.parallel.ranks(), of_system = group.system.ranks();
  const int fit =
      ranks <= of_system ? of_system / ranks * group.nodes : of_system * group.nodes / ranks;
  return std::max(fit, 1);
}

std::vector<HeldAccelerators> held_accelerators(const ServingConfig& serving,
                                                const std::vector<Periods>& held) {
  const bool together = share_one_system(serving);
  std::vector<HeldAccelerators> groups;
  std::size_t first = 0;
  for (const ServingGroup& group : serving.fleet) {
    HeldAccelerators of_group;
    for (int i = 0; i < group.replicas; ++i)
      of_group.used += held_time(held[first + static_cast<std::size_t>(i)]) * group.accelerators();
    of_group.charged = of_group.used;
    if (!together && group.unused == Unused::kIdle) {
      const Seconds servers = servers_held(group, held, first);
      of_group.charged = std::max(of_group.used, servers * accelerators_of_server(group));
    }
    groups.push_back(of_group);
    first += static_cast<std::size_t>(group.replicas);
  }
  if (together) charge_rest_of_system(serving, held, groups);
  return groups;
}

}  // namespace orrery
