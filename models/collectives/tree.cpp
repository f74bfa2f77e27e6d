// SPDX-License-Identifier: Apache-2.0
// All-reduce on two complementary binary trees between systems and a chain inside each, as NCCL has
// it since 2.4: reduce to the roots, then broadcast. Each tree carries half, so that all NICs send
// at most 2 S. The depth is logarithmic where a ring's is linear. In a single system there is only
// the chain: 2(n-1) steps and, inside it, 2 S out of every rank.
#include <algorithm>
#include <memory>

#include "models/collectives/channels.h"
#include "models/collectives/double_tree.h"
#include "models/collectives/schedule.h"

namespace orrery {
namespace {

/// The tree that one channel builds: chains inside the systems, double trees between their heads.
struct ChannelTree {
  const Channels& channels;
  const DoubleTree& trees;
  int channel = 0;

  int head(int system) const { return channels.member(system, channel, 0); }
};

/// One half of a channel's data up and down its tree.
void add_tree(const ChannelTree& on, int tree, Schedule& schedule) {
  const ChunkRange chunk{DoubleTree::kTrees * on.channel + tree, 1};
  const int longest = on.channels.largest_part();
  const int deepest = on.trees.deepest(tree);
  const int at_heads = longest - 1;          // the step in which the heads have their systems
  const int at_root = at_heads + deepest;    // all is reduced
  const int heads_have = at_root + deepest;  // every head has the result
  for (int system = 0; system < on.channels.systems(); ++system) {
    for (int i = 1; i < on.channels.part_size(system); ++i) {
      const int near = on.channels.member(system, on.channel, i - 1);
      const int far = on.channels.member(system, on.channel, i);
      schedule.reduce(longest - 1 - i, far, near, chunk);
      schedule.copy(heads_have + i - 1, near, far, chunk);
    }
    const int parent = on.trees.parent(tree, system);
    if (parent == DoubleTree::kNoParent) continue;
    const int depth = on.trees.depth(tree, system);
    schedule.reduce(at_root - depth, on.head(system), on.head(parent), chunk);
    schedule.copy(at_root + depth - 1, on.head(parent), on.head(system), chunk);
  }
}

class TreeAlgorithm final : public CollectiveAlgorithm {
 public:
  bool serves(const Collective& collective) const override {
    return collective.kind == TransferKind::kAllReduce;
  }

  StepCount run(const Collective& collective, FlowSink& sink) const override {
    const Channels channels(collective);
    const DoubleTree trees(channels.systems());
    const Bytes share = collective.bytes / channels.count();
    const auto exchange = [&](int a, int b, Bytes bytes) {
      sink.add(collective.rank(a), collective.rank(b), bytes);
      sink.add(collective.rank(b), collective.rank(a), bytes);
    };
    for (int channel = 0; channel < channels.count(); ++channel) {
      const ChannelTree on{channels, trees, channel};
      for (int system = 0; system < channels.systems(); ++system) {
        for (int i = 1; i < channels.part_size(system); ++i) {
          exchange(channels.member(system, channel, i - 1), channels.member(system, channel, i),
                   share);
        }
      }
      for (int tree = 0; tree < DoubleTree::kTrees; ++tree) {
        for (int system = 0; system < channels.systems(); ++system) {
          const int parent = trees.parent(tree, system);
          if (parent != DoubleTree::kNoParent)
            exchange(on.head(system), on.head(parent), share / DoubleTree::kTrees);
        }
      }
    }
    return longest_route(channels, trees);
  }

  Schedule schedule(const Collective& collective) const override {
    const Channels channels(collective);
    const DoubleTree trees(channels.systems());
    Schedule schedule{.chunks = channels.count() * DoubleTree::kTrees};
    for (int channel = 0; channel < channels.count(); ++channel) {
      for (int tree = 0; tree < DoubleTree::kTrees; ++tree)
        add_tree({channels, trees, channel}, tree, schedule);
    }
    return schedule;
  }

 private:
  /// From the end of the longest chain below the deepest system to the root, and back.
  static StepCount longest_route(const Channels& channels, const DoubleTree& trees) {
    StepCount longest;
    for (int tree = 0; tree < DoubleTree::kTrees; ++tree) {
      for (int system = 0; system < channels.systems(); ++system) {
        longest = longer(longest, {.scale_up = 2 * (channels.part_size(system) - 1),
                                   .scale_out = 2 * trees.depth(tree, system)});
      }
    }
    return longest;
  }
};

const AlgorithmRegistry::Register registered_tree(
    "tree", "all_reduce on two binary trees between systems, chains inside",
    std::make_shared<TreeAlgorithm>());

}  // namespace
}  // namespace orrery
