// SPDX-License-Identifier: Apache-2.0
// All-reduce whose part between systems is done by the switches there (SHARP: Graham et al.,
// "Scalable hierarchical aggregation protocol", COMHPC 2016; NCCL's CollNetDirect): reduce-scatter
// inside every system, reduction and multicast of each rail in the network, all-gather inside. Over
// systems of m ranks every NIC carries S/m each way, however many systems there are.
#include <memory>

#include "models/collectives/channels.h"
#include "models/collectives/schedule.h"

namespace orrery {
namespace {

class SharpAlgorithm final : public CollectiveAlgorithm {
 public:
  bool serves(const Collective& collective) const override {
    return collective.kind == TransferKind::kAllReduce && collective.switches_reduce &&
           collective.spans_systems() && Channels(collective).even();
  }

  StepCount run(const Collective& collective, FlowSink& sink) const override {
    const Channels channels(collective);
    const RailGroups groups(collective, channels);
    const int rails = channels.part_size(0);
    const Bytes part = collective.bytes / rails;
    for (int system = 0; system < channels.systems(); ++system)
      sink.exchange(groups.system(system), part * 2);
    for (int rail = 0; rail < rails; ++rail) {
      sink.reduce(groups.rail(rail), part);
      sink.multicast(groups.rail(rail), part);
    }
    return {.scale_up = rails > 1 ? 2 : 0, .scale_out = 1};
  }

  Schedule schedule(const Collective& collective) const override {
    const Channels channels(collective);
    const int rails = channels.part_size(0);
    Schedule schedule{.chunks = rails};
    for (int system = 0; system < channels.systems(); ++system) {
      const std::span<const int> members = channels.part(system);
      for (int rail = 0; rail < rails; ++rail) {
        const int own = members[static_cast<std::size_t>(rail)];
        for (const int other : members) {
          if (other == own) continue;
          schedule.reduce(0, other, own, {rail, 1});
          schedule.copy(2, own, other, {rail, 1});
        }
        schedule.reduce(1, own, switches(rail), {rail, 1});
        schedule.copy(1, switches(rail), own, {rail, 1});
      }
    }
    return schedule;
  }
};

const AlgorithmRegistry::Register registered_sharp(
    "sharp", "all_reduce by the switches between systems, one-hop exchanges inside",
    std::make_shared<SharpAlgorithm>());

}  // namespace
}  // namespace orrery
