// SPDX-License-Identifier: Apache-2.0
#include "models/transfers/expert_exchange.h"

#include <algorithm>

#include "sim/machine/system_config.h"

namespace orrery {

ExpertExchangePrice::ExpertExchangePrice(const SystemConfig& system)
    : kernels_(*system.expert_exchange),
      scale_up_efficiency_(system.scale_up.efficiency.value),
      scale_out_efficiency_(system.scale_out.efficiency.value) {}

void ExpertExchangePrice::apply(const Transfer& transfer, bool crosses, const Topology& topology,
                                const std::vector<BytesPerSecond>& capacities,
                                PricedTransfer& priced) const {
  if (priced.cost.loads.empty()) return;  // every group is a single rank
  const bool dispatch = transfer.kind == TransferKind::kDispatch;
  const bool normal = transfer.routing->mode == ExpertRouting::Mode::kNormal;
  const Fact<double>& inside =
      normal ? kernels_.normal_efficiency : kernels_.low_latency_efficiency;
  const double scale_up = scale_up_efficiency_ / inside.value;
  const double scale_out = scale_out_efficiency_ / kernels_.scale_out_efficiency.value;
  Seconds slowest;
  priced.bottleneck.reset();
  priced.cost.loads.change([&](LinkLoad& load) {
    const bool out = topology.bundles()[load.link].kind == LinkKind::kScaleOut;
    load.bytes *= out ? scale_out : scale_up;
    const Seconds time = Bytes(load.bytes) / capacities[load.link];
    if (time <= slowest) return;
    slowest = time;
    priced.bottleneck = load.link;
  });
  // Where a hook receives, kernels of the ranks' own streams are what starts and ends a transfer.
  const Seconds start = transfer.routing->hook ? Seconds(0)
                        : dispatch             ? kernels_.dispatch_start.value
                                               : kernels_.combine_start.value;
  const Seconds floor = (dispatch ? kernels_.dispatch_floor : kernels_.combine_floor).value;
  if (slowest < floor) priced.bottleneck.reset();
  const Seconds crossing = crosses ? kernels_.crossing.value : Seconds(0);
  const Seconds latency =
      start + crossing + std::max(Seconds(0), floor - slowest) + priced.hop_latency;
  priced.cost.latency = to_picoseconds(latency);
  priced.isolated_time = latency + slowest;
}

}  // namespace orrery
