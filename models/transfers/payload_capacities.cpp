// SPDX-License-Identifier: Apache-2.0
#include "models/transfers/payload_capacities.h"

#include "sim/config/diagnostics.h"
#include "sim/machine/system_config.h"

namespace orrery {

std::vector<BytesPerSecond> payload_capacities(const SystemConfig& system,
                                               const Topology& topology) {
  std::vector<BytesPerSecond> capacities;
  capacities.reserve(topology.bundles().size());
  for (BundleId id = 0; id < topology.bundles().size(); ++id) {
    const Bundle& bundle = topology.bundles()[id];
    const bool scale_out = bundle.kind == LinkKind::kScaleOut;
    const Fact<double>& efficiency =
        scale_out ? system.scale_out.efficiency : system.scale_up.efficiency;
    // Links to hosts are configured with what reaches payload.
    const double share = bundle.kind == LinkKind::kHost ? 1 : efficiency.value;
    capacities.push_back(bundle.capacity * share);
    if (!(capacities.back().base() > 0)) {
      throw config::ConfigError(system.name + ": bandwidth and efficiency of " +
                                topology.bundle_name(id) + " must be positive");
    }
  }
  return capacities;
}

}  // namespace orrery
