// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <vector>

#include "tests/unit/models/transfers/flow_checks.h"
#include "tests/unit/models/transfers/test_systems.h"

namespace orrery::direct_test {
namespace {

using namespace orrery::fixtures;

const CollectiveAlgorithm& direct() { return *AlgorithmRegistry::at("collective", "direct"); }

TEST(Direct, EveryPairOfAnAllToAllExchangesItsPart) {
  const RankLayout layout = rank_layout(nvl72(), 1);
  const std::vector<int> group = range(0, 72);
  RecordingSink sink;
  const StepCount steps = direct().run({TransferKind::kAllToAll, 72_MB, group, layout}, sink);
  EXPECT_EQ(sink.flows.size(), 72U * 71U);
  for (const RecordedFlow& flow : sink.flows) {
    EXPECT_NE(flow.source, flow.destination);
    EXPECT_DOUBLE_EQ(flow.bytes, 1e6);
  }
  EXPECT_EQ(steps.scale_up, 1);
  EXPECT_EQ(steps.scale_out, 0);
}

TEST(Direct, AnAllReduceIsAReduceScatterAndAnAllGather) {
  const RankLayout layout = rank_layout(dgx_h100(), 1);
  const std::vector<int> group = range(0, 8);
  RecordingSink reduce, scatter, gather;
  const StepCount steps = direct().run({TransferKind::kAllReduce, 8_MB, group, layout}, reduce);
  direct().run({TransferKind::kReduceScatter, 8_MB, group, layout}, scatter);
  direct().run({TransferKind::kAllGather, 8_MB, group, layout}, gather);
  for (const int rank : group) {
    EXPECT_DOUBLE_EQ(reduce.sent(rank), scatter.sent(rank) + gather.sent(rank));
  }
  EXPECT_EQ(steps.scale_up, 2);
}

TEST(Direct, ReductionsNeedOneScaleUpFabric) {
  const RankLayout layout = rank_layout(dgx_h100(), 2);
  const std::vector<int> inside = range(0, 8), across = range(0, 16);
  EXPECT_TRUE(direct().serves({TransferKind::kAllReduce, 1_MB, inside, layout}));
  EXPECT_FALSE(direct().serves({TransferKind::kAllReduce, 1_MB, across, layout}));
  EXPECT_TRUE(direct().serves({TransferKind::kAllToAll, 1_MB, across, layout}));
}

TEST(Direct, AnAllToAllBetweenSystemsTakesOneScaleOutStep) {
  const RankLayout layout = rank_layout(dgx_h100(), 2);
  const std::vector<int> group = range(0, 16);
  RecordingSink sink;
  const StepCount steps = direct().run({TransferKind::kAllToAll, 1_MB, group, layout}, sink);
  EXPECT_EQ(steps.scale_up, 0);
  EXPECT_EQ(steps.scale_out, 1);
}

}  // namespace
}  // namespace orrery::direct_test
