// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "tests/unit/models/transfers/flow_checks.h"
#include "tests/unit/models/transfers/test_systems.h"

namespace orrery::tree_test {
namespace {

using namespace orrery::fixtures;

const CollectiveAlgorithm& tree() { return *AlgorithmRegistry::at("collective", "tree"); }

/// One rank of each of `n` nodes.
std::vector<int> one_per_node(int n) {
  std::vector<int> group;
  for (int node = 0; node < n; ++node) group.push_back(8 * node);
  return group;
}

TEST(Tree, TwoTreesCarryHalfTheBytesUpAndDownEach) {
  // A tree over n has n-1 edges; two trees, half of S up and half of S down each: 2 (n-1) S in
  // total.
  for (int n = 2; n <= 33; ++n) {
    const RankLayout layout = rank_layout(dgx_h100(), n);
    const std::vector<int> group = one_per_node(n);
    RecordingSink sink;
    tree().run({TransferKind::kAllReduce, 1_MB, group, layout}, sink);
    double total = 0;
    for (const RecordedFlow& flow : sink.flows) total += flow.bytes;
    EXPECT_NEAR(total, 2e6 * (n - 1), 1e-3) << n;
  }
}

TEST(Tree, NoSystemSendsMoreThanTwiceTheBuffer) {
  for (int n = 2; n <= 33; ++n) {
    const RankLayout layout = rank_layout(dgx_h100(), n);
    const std::vector<int> group = one_per_node(n);
    RecordingSink sink;
    tree().run({TransferKind::kAllReduce, 1_MB, group, layout}, sink);
    for (const int rank : group) {
      EXPECT_LE(sink.sent(rank), 2e6 + 1e-3) << n;
      EXPECT_GE(sink.sent(rank), 0.5e6) << n;
    }
  }
}

TEST(Tree, EachTreeReachesEverySystem) {
  // Edges of both trees together, as an undirected graph: from any system every other can be
  // reached.
  for (int n = 2; n <= 33; ++n) {
    const RankLayout layout = rank_layout(dgx_h100(), n);
    const std::vector<int> group = one_per_node(n);
    RecordingSink sink;
    tree().run({TransferKind::kAllReduce, 1_MB, group, layout}, sink);
    const auto half =
        static_cast<std::ptrdiff_t>(sink.flows.size() / 2);  // flows of the first tree
    for (const auto& [begin, end] : {std::pair{sink.flows.begin(), sink.flows.begin() + half},
                                     std::pair{sink.flows.begin() + half, sink.flows.end()}}) {
      std::vector<bool> reached(static_cast<std::size_t>(n));
      reached[0] = true;
      for (int round = 0; round < n; ++round) {
        for (auto flow = begin; flow != end; ++flow) {
          if (reached[static_cast<std::size_t>(layout.system(flow->source))]) {
            reached[static_cast<std::size_t>(layout.system(flow->destination))] = true;
          }
        }
      }
      EXPECT_TRUE(std::all_of(reached.begin(), reached.end(), [](bool r) { return r; })) << n;
    }
  }
}

TEST(Tree, DepthIsLogarithmic) {
  // Up and down a tree over n: at most 2 (log2(n) + 1) steps between systems, where a ring has 2
  // (n-1).
  for (const int n : {2, 16, 64, 100}) {
    const RankLayout layout = rank_layout(dgx_h100(), n);
    const std::vector<int> group = one_per_node(n);
    RecordingSink sink;
    const StepCount steps = tree().run({TransferKind::kAllReduce, 1_MB, group, layout}, sink);
    int log2 = 0;
    while ((2 << log2) <= n) ++log2;
    EXPECT_LE(steps.scale_out, 2 * (log2 + 1)) << n;
    EXPECT_GE(steps.scale_out, 2 * log2) << n;
    EXPECT_EQ(steps.scale_up, 0);
  }
}

TEST(Tree, ChainsInsideASystemAreWalkedUpAndDown) {
  const RankLayout layout = rank_layout(dgx_h100(), 2);
  const std::vector<int> group = range(0, 16);
  RecordingSink sink;
  const StepCount steps = tree().run({TransferKind::kAllReduce, 1_MB, group, layout}, sink);
  EXPECT_EQ(steps.scale_up, 14);  // 2 x 7
  EXPECT_EQ(steps.scale_out, 2);
}

TEST(Tree, InsideASystemItIsAChainUpAndDown) {
  const RankLayout layout = rank_layout(dgx_h100(), 1);
  const std::vector<int> group = range(0, 8);
  RecordingSink sink;
  const StepCount steps = tree().run({TransferKind::kAllReduce, 1_MB, group, layout}, sink);
  EXPECT_EQ(steps.scale_up, 14);
  EXPECT_EQ(steps.scale_out, 0);
  EXPECT_DOUBLE_EQ(sink.sent(0), 1e6);  // the head
  EXPECT_DOUBLE_EQ(sink.sent(3), 2e6);
  EXPECT_DOUBLE_EQ(sink.sent(7), 1e6);  // the end
}

TEST(Tree, ServesOnlyAllReduce) {
  const RankLayout layout = rank_layout(dgx_h100(), 2);
  const std::vector<int> across = range(0, 16);
  EXPECT_FALSE(tree().serves({TransferKind::kAllGather, 1_MB, across, layout}));
  EXPECT_TRUE(tree().serves({TransferKind::kAllReduce, 1_MB, across, layout}));
}

}  // namespace
}  // namespace orrery::tree_test
