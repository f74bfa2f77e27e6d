// SPDX-License-Identifier: Apache-2.0
#include "models/collectives/expert_reach.h"

#include <gtest/gtest.h>

#include <vector>

namespace orrery::expert_reach_test {
namespace {

/// Calls `visit` with every subset of `k` of 0 .. n - 1, as flags.
template <class Visit>
void for_subsets(int n, int k, const Visit& visit) {
  for (unsigned set = 0; set < 1U << static_cast<unsigned>(n); ++set) {
    if (__builtin_popcount(set) == k) visit(set);
  }
}

/// The same figure by counting: every choice of groups, then every choice of experts in them,
/// equally likely.
double counted(const ExpertRouting& routing, int first, int last) {
  const int groups = routing.groups > 0 ? routing.groups : 1;
  const int chosen = routing.groups > 0 ? routing.top_groups : 1;
  const int each = routing.experts / groups;
  double sum = 0, choices = 0;
  for_subsets(groups, chosen, [&](unsigned open) {
    double hits = 0, all = 0;
    for_subsets(routing.experts, routing.top_k, [&](unsigned experts) {
      bool hit = false;
      for (int e = 0; e < routing.experts; ++e) {
        if ((experts >> static_cast<unsigned>(e) & 1U) == 0) continue;
        if ((open >> static_cast<unsigned>(e / each) & 1U) == 0) return;
        hit = hit || (e >= first && e < last);
      }
      all += 1;
      hits += hit ? 1 : 0;
    });
    sum += hits / all;
    choices += 1;
  });
  return sum / choices;
}

SlotRange range(int first, int last, int slots) {
  return {static_cast<double>(first), static_cast<double>(last), static_cast<double>(slots)};
}

TEST(ExpertReach, IsTheShareOfChoicesThatHitTheRange) {
  const ExpertRouting routing{.experts = 12, .top_k = 3};
  for (int members = 1; members <= 12; ++members)
    EXPECT_NEAR(reach(routing, range(0, members, 12)), counted(routing, 0, members), 1e-12);
}

TEST(ExpertReach, HoldsForGroupsThatARangeHasWholeInPartOrNot) {
  for (int top_groups = 1; top_groups <= 4; ++top_groups) {
    const ExpertRouting routing{.experts = 12, .top_k = 3, .groups = 4, .top_groups = top_groups};
    for (int first = 0; first < 12; ++first) {
      for (int last = first + 1; last <= 12; ++last) {
        EXPECT_NEAR(reach(routing, range(first, last, 12)), counted(routing, first, last), 1e-12)
            << top_groups << " groups, experts " << first << " to " << last;
      }
    }
  }
}

TEST(ExpertReach, NodeLimitBoundsTheNodesOfAToken) {
  // DeepSeek-V3: 256 experts on 8 nodes, 8 a token, at most 4 nodes (arXiv 2412.19437).
  const ExpertRouting free{.experts = 256, .top_k = 8};
  ExpertRouting limited = free;
  limited.groups = 8;
  limited.top_groups = 4;
  double free_nodes = 0, limited_nodes = 0;
  for (int node = 0; node < 8; ++node) {
    free_nodes += reach(free, range(32 * node, 32 * node + 32, 256));
    limited_nodes += reach(limited, range(32 * node, 32 * node + 32, 256));
  }
  EXPECT_NEAR(free_nodes, 5.295, 0.001);
  EXPECT_NEAR(limited_nodes, 3.629, 0.001);
}

TEST(ExpertReach, PerfectRouterReachesAsManyRangesAsThereAreExpertsOfAToken) {
  ExpertRouting routing{.experts = 256, .top_k = 8, .router = ExpertRouting::Router::kPerfect};
  EXPECT_DOUBLE_EQ(reach(routing, range(0, 16, 256)), 0.5);  // 8 of 16 ranks
  EXPECT_DOUBLE_EQ(reach(routing, range(0, 32, 256)), 1);
  EXPECT_DOUBLE_EQ(reach(routing, range(0, 64, 256)), 1);
  routing.groups = 8;
  routing.top_groups = 4;
  EXPECT_DOUBLE_EQ(reach(routing, range(0, 32, 256)), 0.5);  // its group is taken or not
}

TEST(ExpertReach, EveryExpertReachesEveryRange) {
  const ExpertRouting routing{.experts = 8, .top_k = 8};
  EXPECT_DOUBLE_EQ(reach(routing, range(3, 4, 8)), 1);
}

}  // namespace
}  // namespace orrery::expert_reach_test
