// SPDX-License-Identifier: Apache-2.0
#include "sim/app/pricing/rank_prices.h"

#include <utility>

namespace orrery {

RankPrices rank_prices(const Program& program, const PricedProgram& priced,
                       const MachineNetwork& network) {
  RankPrices prices{Images(program), {}};
  Costs& costs = prices.costs;
  costs.kernels = priced.costs.kernels;
  costs.enqueue = priced.costs.enqueue;
  for (TransferId id = 0; id < program.transfers.size(); ++id) {
    const TransferCost& whole = priced.costs.transfers[id];
    for (LinkLoads& loads : network.start().image_loads(program.transfers[id], prices.images.at(id),
                                                        priced.transfers[id])) {
      costs.transfers.push_back({whole.latency, std::move(loads), whole.rate_limit, whole.device});
    }
  }
  network.start().fill_links(costs);
  network.add_link_events(program, priced.transfers, costs, &prices.images);
  return prices;
}

}  // namespace orrery
