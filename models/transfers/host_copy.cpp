// SPDX-License-Identifier: Apache-2.0
#include "models/transfers/host_copy.h"

#include <map>

namespace orrery {

PricedTransfer host_copy(const Transfer& transfer, const HostPath& path) {
  PricedTransfer priced;
  priced.algorithm = "copy";
  priced.protocol = "none";
  std::map<BundleId, double> loads;
  Route route;
  for (const std::vector<int>& group : transfer.groups) {
    route.clear();
    path.fabric.append_host_route(group.front(), transfer.host->end, transfer.host->outward, route);
    for (const Hop& hop : route) loads[hop.bundle] += transfer.bytes.base() * hop.share;
  }
  for (const auto& [bundle, bytes] : loads) {
    priced.cost.loads.push_back({bundle, bytes, bytes});
    const Seconds time = Bytes(bytes) / path.capacities[bundle];
    if (time <= priced.limit) continue;
    priced.limit = time;
    priced.bottleneck = bundle;
  }
  priced.cost.latency = to_picoseconds(path.start);
  priced.isolated_time = path.start + priced.limit;
  return priced;
}

}  // namespace orrery
