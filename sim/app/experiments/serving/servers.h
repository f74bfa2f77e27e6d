// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "sim/app/experiments/serving/config.h"
#include "sim/serving/autoscaler.h"

namespace orrery {

/// Replicas of a group that share a server. A server is the `nodes` systems of a replica. A replica
/// that fits in one system does not straddle two.
int replicas_per_server(const ServingGroup& group);

/// The time of all periods, which do not overlap.
Seconds held_time(const std::vector<HeldPeriod>& periods);

/// Accelerators of a group times the time for which they are held.
struct HeldAccelerators {
  Seconds used;     ///< accelerators of replicas, while the replica is held
  Seconds charged;  ///< accelerators whose host power and price are charged: at least the used ones
};

/// Divides servers among the replicas of each group, in the order of the replicas. With `unused:
/// idle` all accelerators of a server are charged while any of its replicas is held; with `absent`
/// each replica is charged its own while it is held. With kv_transfer.over: scale_up the replicas
/// of all groups share one server; the first group is charged for what nobody uses there.
/// @param held periods of each instance, in the order of the groups; periods of one do not overlap
/// @return one entry a group
std::vector<HeldAccelerators> held_accelerators(const ServingConfig& serving,
                                                const std::vector<std::vector<HeldPeriod>>& held);

}  // namespace orrery
