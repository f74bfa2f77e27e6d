// SPDX-License-Identifier: Apache-2.0
// Kernels beside transfers, against times by hand.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <sstream>
#include <stdexcept>

#include "sim/graph/verify.h"
#include "sim/replay/replay.h"
#include "sim/trace/timeline.h"
#include "tests/unit/replay/program_builder.h"

namespace orrery::device_sharing_test {
namespace {

using namespace literals;
using B = TestProgramBuilder;

/// Takes twice as long beside 100 SMs, three times beside 200, ...
class ByUnits final : public SlowdownModel {
 public:
  double slowdown(KernelId /*kernel*/, const DeviceLoad& taken) override {
    ++asked;
    return 1 + static_cast<double>(taken.units) / 100;
  }
  int asked = 0;
};

ReplayResult run(const TestProgramBuilder& b, Timeline* timeline = nullptr) {
  EXPECT_THAT(verify(b.program), testing::IsEmpty());
  ByUnits slowdowns;
  ReplayResult result = replay(b.program, b.costs, {timeline, &slowdowns});
  for (const RoleResult& role : result.roles) {
    const TimeBreakdown& t = role.breakdown;
    EXPECT_EQ(t.compute + t.contention + t.exposed_communication + t.bubble + t.optimizer + t.host +
                  t.idle,
              result.end);
  }
  return result;
}

/// A transfer of so many picoseconds that takes `units` SMs.
TransferCost lasting(Picoseconds time, std::int64_t units) { return {time, {}, {}, {units, 0}}; }

/// A kernel of 1 us beside a chain of transfers on a stream of their own.
TestProgramBuilder kernel_beside(const std::vector<TransferCost>& transfers) {
  TestProgramBuilder b;
  OperatorGraph graph;
  graph.add(B::compute(b.kernel(1'000'000, 40'000)));
  for (const TransferCost& cost : transfers) {
    const TransferId t = b.transfer("t" + std::to_string(b.costs.transfers.size()), 1, cost);
    graph.add(B::collective(t));
  }
  b.role({b.block(graph)});
  return b;
}

TEST(DeviceSharing, AKernelBesideATransferForHalfItsTimeIsThatMuchSlowerInThatHalf) {
  // 0.5 us at half the speed are worth 0.25 us: the rest takes 0.75 us.
  const ReplayResult result = run(kernel_beside({lasting(500'000, 100)}));
  EXPECT_EQ(result.end, 1'250'000U);
  EXPECT_EQ(result.roles[0].breakdown.contention, 250'000U);
  EXPECT_EQ(result.roles[0].breakdown.compute, 960'000U);
  EXPECT_EQ(result.roles[0].breakdown.host, 40'000U);
  EXPECT_EQ(result.roles[0].block_time[0], 1'250'000U);
}

TEST(DeviceSharing, AKernelThatEndsBeforeTheTransferIsSlowToItsEnd) {
  const ReplayResult result = run(kernel_beside({lasting(5'000'000, 50)}));
  EXPECT_EQ(result.roles[0].breakdown.contention, 500'000U);
  EXPECT_EQ(result.roles[0].breakdown.exposed_communication, 3'500'000U);
}

TEST(DeviceSharing, LoadsThatComeAndGoAddUpToThePicosecond) {
  // 0.2 us free, 0.3 us at 1/2, 0.2 us free, 0.3 us at 1/4, then free: 0.2 + 0.15 + 0.2 + 0.075 us
  // of work by 1.0 us, 0.375 us are left.
  const ReplayResult result = run(kernel_beside(
      {lasting(200'000, 0), lasting(300'000, 100), lasting(200'000, 0), lasting(300'000, 300)}));
  EXPECT_EQ(result.end, 1'375'000U);
}

TEST(DeviceSharing, TransfersAtTheSameTimeTakeTheirSum) {
  TestProgramBuilder b;
  OperatorGraph graph;
  graph.add(B::compute(b.kernel(1'000'000)));
  graph.add(B::collective(b.transfer("a", 1, lasting(600'000, 100)), 1));
  graph.add(B::collective(b.transfer("b", 1, lasting(300'000, 100)), 2));
  b.program.streams = {"compute", "a", "b"};
  b.role({b.block(graph)});
  // 0.3 us at 1/3, 0.3 us at 1/2: 0.25 us of work by 0.6 us.
  EXPECT_EQ(run(b).end, 1'350'000U);
}

TEST(DeviceSharing, AMessageTakesTheDevicesOfBothEndsFromWhenBothAreThere) {
  TestProgramBuilder b;
  const KernelId kernel = b.kernel(1'000'000);
  const KernelId before = b.kernel(400'000);
  const TransferId message =
      b.transfer("message", 2, lasting(200'000, 100), TransferKind::kSendReceive);
  OperatorGraph sender;
  const OperatorId first = sender.add(B::compute(before));
  sender.depends(sender.add(B::send(message)), first);
  sender.add(B::compute(kernel));
  b.role({b.block(sender)});
  OperatorGraph receiver;
  receiver.add(B::compute(kernel));
  receiver.add(B::receive(message));
  b.role({b.block(receiver)});
  const ReplayResult result = run(b);
  EXPECT_EQ(result.roles[0].end, 400'000U + 1'100'000U);
  EXPECT_EQ(result.roles[1].end, 1'100'000U);
}

TEST(DeviceSharing, AKernelThatWaitsForTheHostIsNotSlowedBeforeItRuns) {
  TestProgramBuilder b = kernel_beside({lasting(700'000, 100)});
  b.costs.enqueue = 500'000;
  const ReplayResult result = run(b);  // 0.2 us beside the transfer, worth 0.1 us
  EXPECT_EQ(result.end, 1'600'000U);
  EXPECT_EQ(result.roles[0].breakdown.contention, 100'000U);
  EXPECT_EQ(result.roles[0].breakdown.host, 540'000U);
}

TEST(DeviceSharing, WithoutOverlapNothingChanges) {
  TestProgramBuilder b;
  const TransferId t = b.transfer("t", 1, lasting(300'000, 100));
  const KernelId k = b.kernel(123'457, 100);
  const BlockId block = b.chain({B::compute(k), B::collective(t), B::compute(k)});
  b.role({block, block, block});
  const ReplayResult slowed = run(b);
  const ReplayResult plain = replay(b.program, b.costs);
  EXPECT_EQ(slowed.end, plain.end);
  EXPECT_EQ(slowed.events, plain.events);
  EXPECT_EQ(slowed.roles[0].breakdown.contention, 0U);
  EXPECT_EQ(slowed.roles[0].breakdown.host, plain.roles[0].breakdown.host);
}

TEST(DeviceSharing, AFoldedPairTakesAsLongAsBothOfIt) {
  const auto pair = [](bool folded) {
    TestProgramBuilder b;
    const KernelId kernel = b.kernel(777'777);
    const TransferId t = b.transfer("t", folded ? 1 : 2, lasting(333'333, 37));
    OperatorGraph graph;
    graph.add(B::compute(kernel));
    graph.add(B::collective(t));
    const BlockId block = b.block(graph);
    for (int role = 0; role < (folded ? 1 : 2); ++role) b.role({block, block});
    return b;
  };
  const ReplayResult two = run(pair(false));
  const ReplayResult one = run(pair(true));
  EXPECT_GT(one.roles[0].breakdown.contention, 0U);
  EXPECT_EQ(one.end, two.end);
  for (const RoleResult& role : two.roles)
    EXPECT_EQ(role.breakdown.contention, one.roles[0].breakdown.contention);
}

TEST(DeviceSharing, MoreSmsForCommunicationNeverMakeTheStepFaster) {
  Picoseconds before = 0;
  for (const std::int64_t units : {0, 1, 8, 16, 24, 48, 96}) {
    const Picoseconds end =
        run(kernel_beside({lasting(100'000, units), lasting(150'000, 0), lasting(50'000, units)}))
            .end;
    EXPECT_GE(end, before) << units;
    before = end;
  }
  EXPECT_GT(before, 1'000'000U);
}

TEST(DeviceSharing, EachKernelAndLoadThatMeetAreAskedForOnce) {
  TestProgramBuilder b = kernel_beside({lasting(300'000, 100), lasting(300'000, 200)});
  b.program.roles[0].calls.assign(50, 0);
  ByUnits slowdowns;
  replay(b.program, b.costs, {nullptr, &slowdowns});
  EXPECT_EQ(slowdowns.asked, 2);
}

TEST(DeviceSharing, ATransferThatMakesKernelsFasterIsABug) {
  class Wrong final : public SlowdownModel {
   public:
    explicit Wrong(double value) : value_(value) {}
    double slowdown(KernelId /*kernel*/, const DeviceLoad& /*taken*/) override { return value_; }

   private:
    double value_;
  };
  const TestProgramBuilder b = kernel_beside({lasting(500'000, 100)});
  for (const double value : {0.9, std::numeric_limits<double>::quiet_NaN()}) {
    Wrong slowdowns(value);
    EXPECT_THROW(replay(b.program, b.costs, {nullptr, &slowdowns}), std::logic_error);
  }
  Wrong endless(1e300);
  EXPECT_THROW(replay(b.program, b.costs, {nullptr, &endless}), std::overflow_error);
}

TEST(DeviceSharing, ATimelineShowsWhatTransfersTake) {
  std::ostringstream trace;
  Timeline timeline(trace);
  run(kernel_beside({lasting(500'000, 100)}), &timeline);
  timeline.close();
  EXPECT_THAT(trace.str(), testing::HasSubstr("SMs taken by transfers"));
}

}  // namespace
}  // namespace orrery::device_sharing_test
