// SPDX-License-Identifier: Apache-2.0
// NVLink SHARP (NVLS, NCCL 2.17): switches inside a system reduce what a rank loads from all and
// multicast what it stores to all. Every rank is responsible for one n-th of the buffer S:
//
//   reduce_scatter   it loads its part: S up from every rank, S/n down           1 step
//   all_gather       it stores its part: S/n up from every rank, S down          1 step
//   all_reduce       both: (1 + 1/n) S up and down                               2 steps
//
// The part of a rank itself goes through the switches too. (Klenk et al., "An in-network
// architecture for accelerating shared-memory multiprocessor collectives", ISCA 2020.)
#include <memory>

#include "models/collectives/schedule.h"

namespace orrery {
namespace {

class NvlsAlgorithm final : public CollectiveAlgorithm {
 public:
  bool serves(const Collective& collective) const override {
    using enum TransferKind;
    return collective.is_any({kAllReduce, kAllGather, kReduceScatter}) &&
           collective.switches_reduce && !collective.spans_systems();
  }

  StepCount run(const Collective& collective, FlowSink& sink) const override {
    const Bytes part = collective.bytes / collective.size();
    StepCount steps;
    if (collective.kind != TransferKind::kAllGather) {
      sink.reduce(collective.group, collective.bytes);
      for (std::size_t i = 0; i < collective.group.size(); ++i)
        sink.multicast(collective.group.subspan(i, 1), part);
      ++steps.scale_up;
    }
    if (collective.kind != TransferKind::kReduceScatter) {
      for (std::size_t i = 0; i < collective.group.size(); ++i)
        sink.reduce(collective.group.subspan(i, 1), part);
      sink.multicast(collective.group, collective.bytes);
      ++steps.scale_up;
    }
    return steps;
  }

  Schedule schedule(const Collective& collective) const override {
    const int n = collective.size();
    Schedule schedule{.chunks = n};
    for (int owner = 0; owner < n; ++owner) {
      int step = 0;
      if (collective.kind != TransferKind::kAllGather) {
        for (int member = 0; member < n; ++member)
          schedule.reduce(step, member, switches(0), {owner, 1});
        schedule.copy(step, switches(0), owner, {owner, 1});
        ++step;
      }
      if (collective.kind == TransferKind::kReduceScatter) continue;
      schedule.copy(step, owner, switches(0), {owner, 1});
      for (int member = 0; member < n; ++member)
        schedule.copy(step, switches(0), member, {owner, 1});
    }
    return schedule;
  }
};

const AlgorithmRegistry::Register registered_nvls(
    "nvls", "the switches of a system reduce and multicast (NVLink SHARP)",
    std::make_shared<NvlsAlgorithm>());

}  // namespace
}  // namespace orrery
