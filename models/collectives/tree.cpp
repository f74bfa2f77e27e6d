// SPDX-License-Identifier: Apache-2.0
// All-reduce on two complementary binary trees between systems and a chain inside each, as NCCL has
// it since 2.4: reduce to the roots, then broadcast. Each tree carries half; a system that is an
// inner node of one tree is a leaf of the other, so that all NICs send at most 2 S (Sanders, Speck,
// Träff, "Two-tree algorithms for full bandwidth broadcast, reduction and scan", Parallel Computing
// 2009). The depth is logarithmic where a ring's is linear.
#include <algorithm>
#include <memory>
#include <vector>

#include "models/collectives/channels.h"

namespace orrery {
namespace {

constexpr int kNoParent = -1;

/// An in-order binary tree over 0..n-1 rooted at 0: the lowest set bit of a node is its height
/// above the leaves, which are the odd numbers. The parent has the next bit set, unless that is
/// beyond n.
int first_tree_parent(int node, int n) {
  if (node == 0) return kNoParent;
  const int bit = node & -node;
  const int up = (node ^ bit) | (bit << 1);
  return up < n ? up : node ^ bit;
}

/// The first tree mirrored (n even) or shifted by one (n odd), which turns its leaves into inner
/// nodes.
int second_tree_parent(int node, int n) {
  const auto rename = [n](int x) { return n % 2 == 0 ? n - 1 - x : (x + 1) % n; };
  const auto original = [n](int x) { return n % 2 == 0 ? n - 1 - x : (x + n - 1) % n; };
  const int parent = first_tree_parent(original(node), n);
  return parent == kNoParent ? kNoParent : rename(parent);
}

using ParentOf = int (*)(int node, int n);

int depth(ParentOf parent_of, int n) {
  int deepest = 0;
  for (int node = 0; node < n; ++node) {
    int steps = 0;
    for (int up = parent_of(node, n); up != kNoParent; up = parent_of(up, n)) ++steps;
    deepest = std::max(deepest, steps);
  }
  return deepest;
}

void exchange(int a, int b, Bytes bytes, FlowSink& sink) {
  sink.add(a, b, bytes);
  sink.add(b, a, bytes);
}

class TreeAlgorithm final : public CollectiveAlgorithm {
 public:
  bool serves(const Collective& collective) const override {
    return collective.kind == TransferKind::kAllReduce && collective.spans_systems();
  }

  StepCount run(const Collective& collective, FlowSink& sink) const override {
    const Channels channels(collective);
    const Bytes share = collective.bytes / channels.count();
    for (int channel = 0; channel < channels.count(); ++channel) {
      add_channel(channels, channel, share, sink);
    }
    const int deepest = std::max(depth(first_tree_parent, channels.systems()),
                                 depth(second_tree_parent, channels.systems()));
    return {.scale_up = 2 * (channels.largest_part() - 1), .scale_out = 2 * deepest};
  }

 private:
  static void add_channel(const Channels& channels, int channel, Bytes share, FlowSink& sink) {
    const int n = channels.systems();
    std::vector<int> heads;
    for (int system = 0; system < n; ++system) {
      const std::vector<int> chain = channels.visit(system, channel);
      for (std::size_t i = 1; i < chain.size(); ++i) exchange(chain[i - 1], chain[i], share, sink);
      heads.push_back(chain.front());
    }
    for (const ParentOf parent_of : {first_tree_parent, second_tree_parent}) {
      for (int system = 0; system < n; ++system) {
        const int parent = parent_of(system, n);
        if (parent == kNoParent) continue;
        exchange(heads[static_cast<std::size_t>(system)], heads[static_cast<std::size_t>(parent)],
                 share / 2, sink);
      }
    }
  }
};

const AlgorithmRegistry::Register registered(
    "tree", "all_reduce on two binary trees between systems, chains inside",
    std::make_shared<TreeAlgorithm>());

}  // namespace
}  // namespace orrery
