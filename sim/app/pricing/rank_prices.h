// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "sim/app/pricing/machine_network.h"
#include "sim/app/pricing/pricing.h"
#include "sim/graph/images.h"

namespace orrery {

/// Prices of a program whose ranks are replayed one by one. An image of a transfer takes its own
/// part of the links; algorithm, protocol, latency and what it takes of devices are those of all
/// images together.
struct RankPrices {
  Images images;
  Costs costs;  ///< costs of transfers by image
};
RankPrices rank_prices(const Program& program, const PricedProgram& priced,
                       const MachineNetwork& network);

}  // namespace orrery
