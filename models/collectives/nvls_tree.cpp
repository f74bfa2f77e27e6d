// SPDX-License-Identifier: Apache-2.0
// All-reduce with NVLS inside systems and the double tree between them (NCCL's NVLSTree): the
// switches reduce the i-th part of a system into its i-th rank, the parts go up and down two trees
// on the rails, and the switches multicast the results. Over systems of m ranks every NIC sends at
// most 2 S/m.
#include <algorithm>
#include <memory>

#include "models/collectives/channels.h"
#include "models/collectives/double_tree.h"
#include "models/collectives/schedule.h"

namespace orrery {
namespace {

class NvlsTreeAlgorithm final : public CollectiveAlgorithm {
 public:
  bool serves(const Collective& collective) const override {
    if (collective.kind != TransferKind::kAllReduce || !collective.systems_reduce ||
        !collective.spans_systems()) {
      return false;
    }
    const Channels channels(collective);
    return channels.even() && channels.part_size(0) > 1;
  }

  StepCount run(const Collective& collective, FlowSink& sink) const override {
    const Channels channels(collective);
    const RailGroups groups(collective, channels);
    const DoubleTree trees(channels.systems());
    const Bytes part = collective.bytes / channels.part_size(0);
    for (int system = 0; system < channels.systems(); ++system) {
      const std::span<const int> ranks = groups.system(system);
      sink.reduce(ranks, collective.bytes);
      sink.multicast(ranks, collective.bytes);
      for (std::size_t rail = 0; rail < ranks.size(); ++rail) {
        sink.multicast(ranks.subspan(rail, 1), part);
        sink.reduce(ranks.subspan(rail, 1), part);
        for (int tree = 0; tree < DoubleTree::kTrees; ++tree) {
          const int parent = trees.parent(tree, system);
          if (parent == DoubleTree::kNoParent) continue;
          const int above = groups.system(parent)[rail];
          sink.add(ranks[rail], above, part / DoubleTree::kTrees);
          sink.add(above, ranks[rail], part / DoubleTree::kTrees);
        }
      }
    }
    return {.scale_up = 2, .scale_out = 2 * std::max(trees.deepest(0), trees.deepest(1))};
  }

  Schedule schedule(const Collective& collective) const override {
    const Channels channels(collective);
    const DoubleTree trees(channels.systems());
    const int rails = channels.part_size(0);
    Schedule schedule{.chunks = DoubleTree::kTrees * rails};
    for (int rail = 0; rail < rails; ++rail) {
      for (int tree = 0; tree < DoubleTree::kTrees; ++tree)
        add_tree(channels, trees, {rail, tree}, schedule);
    }
    return schedule;
  }

 private:
  struct Half {
    int rail = 0, tree = 0;
  };

  static void add_tree(const Channels& channels, const DoubleTree& trees, Half half,
                       Schedule& schedule) {
    const ChunkRange chunk{DoubleTree::kTrees * half.rail + half.tree, 1};
    const int at_root = 1 + trees.deepest(half.tree);
    const int all_have = at_root + trees.deepest(half.tree);
    const auto on_rail = [&](int system) {
      return channels.part(system)[static_cast<std::size_t>(half.rail)];
    };
    for (int system = 0; system < channels.systems(); ++system) {
      const int own = on_rail(system);
      for (const int member : channels.part(system)) {
        schedule.reduce(0, member, switches(system), chunk);
        schedule.copy(all_have, switches(system), member, chunk);
      }
      schedule.copy(0, switches(system), own, chunk);
      schedule.copy(all_have, own, switches(system), chunk);
      const int parent = trees.parent(half.tree, system);
      if (parent == DoubleTree::kNoParent) continue;
      const int depth = trees.depth(half.tree, system);
      schedule.reduce(at_root - depth, own, on_rail(parent), chunk);
      schedule.copy(at_root + depth - 1, on_rail(parent), own, chunk);
    }
  }
};

const AlgorithmRegistry::Register registered_nvls_tree(
    "nvls_tree", "all_reduce by the switches inside systems, on two binary trees between them",
    std::make_shared<NvlsTreeAlgorithm>());

}  // namespace
}  // namespace orrery
