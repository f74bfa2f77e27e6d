// SPDX-License-Identifier: Apache-2.0
#include "sim/machine/network.h"

namespace orrery {

void Network::fill_links(Costs& costs) const { costs.links = capacities(); }

}  // namespace orrery
