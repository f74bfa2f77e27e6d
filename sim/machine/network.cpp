// SPDX-License-Identifier: Apache-2.0
#include "sim/machine/network.h"

namespace orrery {

void Network::fill_links(Costs& costs) const {
  costs.links = capacities();
  costs.link_names.clear();
  for (const Bundle& bundle : topology().bundles()) costs.link_names.push_back(bundle.name);
}

}  // namespace orrery
