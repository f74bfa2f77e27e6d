// SPDX-License-Identifier: Apache-2.0
#include "sim/replay/replay.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <sstream>
#include <stdexcept>

#include "sim/graph/verify.h"
#include "sim/network/flow_network.h"
#include "sim/trace/timeline.h"
#include "tests/unit/replay/program_builder.h"

namespace orrery::replay_test {
namespace {

using namespace literals;
using B = TestProgramBuilder;

Picoseconds sum(const TimeBreakdown& b) {
  return b.compute + b.contention + b.exposed_communication + b.bubble + b.optimizer + b.host +
         b.idle;
}

ReplayResult run(const TestProgramBuilder& b) {
  EXPECT_THAT(verify(b.program), testing::IsEmpty());
  ReplayResult result = replay(b.program, b.costs);
  for (const RoleResult& role : result.roles) {
    EXPECT_EQ(sum(role.breakdown), result.end);
  }
  return result;
}

TEST(Replay, AnEmptyProgramEndsAtZero) {
  TestProgramBuilder b;
  b.role({});
  EXPECT_EQ(run(b).end, 0U);
}

TEST(Replay, OperatorsOfAStreamFollowEachOther) {
  TestProgramBuilder b;
  const KernelId k = b.kernel(100, 30);
  const KernelId adam = b.kernel(50, 5);
  const BlockId block = b.chain({B::compute(k), B::compute(adam, Category::kOptimizer)});
  b.role({block, block});
  const ReplayResult result = run(b);
  EXPECT_EQ(result.end, 300U);
  EXPECT_EQ(result.operators, 4U);
  EXPECT_EQ(result.roles[0].breakdown.host, 70U);       // 2 * (30 + 5)
  EXPECT_EQ(result.roles[0].breakdown.compute, 140U);   // 2 * (100 - 30)
  EXPECT_EQ(result.roles[0].breakdown.optimizer, 90U);  // 2 * (50 - 5)
}

TEST(Replay, AKernelWaitsForWhatTheHostTakesToIssueIt) {
  // Issued at 70 and 170: the second follows the first, which ends at 120.
  TestProgramBuilder b;
  const KernelId first = b.kernel(50, 0), second = b.kernel(50, 0);
  b.costs.kernels[first].issue = 70;
  b.costs.kernels[second].issue = 100;
  b.role({b.chain({B::compute(first), B::compute(second)})});
  EXPECT_EQ(run(b).end, 220U);
}

TEST(Replay, TheHostIssuesNothingWhileItWaitsForAKernel) {
  // The first ends at 100; from then the host issues the second, for 30.
  TestProgramBuilder b;
  const KernelId counts = b.kernel(100, 0), next = b.kernel(50, 0);
  b.costs.kernels[counts].host_waits = true;
  b.costs.kernels[next].issue = 30;
  b.role({b.chain({B::compute(counts), B::compute(next)})});
  const ReplayResult result = run(b);
  EXPECT_EQ(result.end, 180U);
  EXPECT_EQ(result.roles[0].breakdown.host, 30U);
}

TEST(Replay, AKernelWaitsUntilTheHostHasEnqueuedIt) {
  // Enqueued at 100, 200, 300 and 400. The first three wait for that; the long third hides it for
  // the fourth.
  TestProgramBuilder b;
  const KernelId brief = b.kernel(40, 10), lengthy = b.kernel(500, 10);
  b.role({b.chain({B::compute(brief), B::compute(brief), B::compute(lengthy), B::compute(brief)})});
  b.costs.enqueue = 100;
  const ReplayResult result = run(b);
  EXPECT_EQ(result.end, 300U + 500U + 40U);
  EXPECT_EQ(result.roles[0].breakdown.compute, 30U + 30U + 490U + 30U);
  EXPECT_EQ(result.roles[0].breakdown.host, 840U - 580U);
}

TEST(Replay, StreamsRunAtTheSameTime) {
  TestProgramBuilder b;
  OperatorGraph graph;
  graph.add(B::compute(b.kernel(100)));
  graph.add(B::compute(b.kernel(70), Category::kCompute, 1));
  b.role({b.block(graph)});
  EXPECT_EQ(run(b).end, 100U);
}

TEST(Replay, ATransferAloneTakesLatencyPlusBytesOverCapacity) {
  TestProgramBuilder b;
  const auto link = b.link(50_GBps);
  // 1 GB at 50 GB/s is 20 ms.
  const TransferId t = b.transfer("all_reduce", 1, {5'000'000, {{link, 1e9}}});
  b.role({b.chain({B::collective(t)})});
  const ReplayResult result = run(b);
  EXPECT_EQ(result.end, 5'000'000U + 20'000'000'000U);
  EXPECT_EQ(result.roles[0].breakdown.exposed_communication, result.end);
  EXPECT_EQ(result.link_bytes, std::vector<double>{1e9});
}

TEST(Replay, TwoTransfersOnOneLinkGetHalfEach) {
  TestProgramBuilder b;
  const auto link = b.link(1_GBps);
  const TransferId small = b.transfer("small", 1, {0, {{link, 1e6}}});
  const TransferId large = b.transfer("large", 1, {0, {{link, 3e6}}});
  b.role({b.chain({B::collective(small)})});
  b.role({b.chain({B::collective(large)})});
  const ReplayResult result = run(b);
  // Half of 1 GB/s for 1 MB: 2 ms. By then the large one has 2 MB left, at the full rate: 4 ms in
  // all.
  EXPECT_EQ(result.roles[0].end, 2'000'000'000U);
  EXPECT_EQ(result.roles[1].end, 4'000'000'000U);
  EXPECT_EQ(result.last_role, 1);
}

TEST(Replay, AMessageAndACollectiveOnOneLinkGetHalfEach) {
  TestProgramBuilder b;
  const auto shared = b.link(1_GBps);
  const auto other = b.link(1_GBps);
  const TransferId message =
      b.transfer("message", 2, {0, {{shared, 1e6}}}, TransferKind::kSendReceive);
  const TransferId collective = b.transfer("all_reduce", 1, {0, {{shared, 1e6}, {other, 5e5}}});
  b.role({b.chain({B::send(message)})});
  b.role({b.chain({B::receive(message)})});
  b.role({b.chain({B::collective(collective)})});
  for (const RoleResult& role : run(b).roles) {
    EXPECT_EQ(role.end, 2'000'000'000U);
  }
}

TEST(Replay, GapsAreBubbleUntilThePeerComesAndExposedAfterwards) {
  TestProgramBuilder b;
  const auto link = b.link(1_GBps);
  const TransferId t = b.transfer("all_reduce", 2, {0, {{link, 1000}}});  // 1 us
  const KernelId shorter = b.kernel(300'000);
  const KernelId longer = b.kernel(1'000'000);
  const KernelId after = b.kernel(10);
  b.role({b.chain({B::compute(shorter), B::collective(t), B::compute(after)})});
  b.role({b.chain({B::compute(longer), B::collective(t), B::compute(after)})});
  const ReplayResult result = run(b);
  EXPECT_EQ(result.end, 2'000'010U);
  EXPECT_EQ(result.roles[0].breakdown.bubble, 700'000U);
  EXPECT_EQ(result.roles[0].breakdown.exposed_communication, 1'000'000U);
  EXPECT_EQ(result.roles[1].breakdown.bubble, 0U);
  EXPECT_EQ(result.roles[1].breakdown.exposed_communication, 1'000'000U);
}

TEST(Replay, CommunicationBehindComputeIsNotExposed) {
  TestProgramBuilder b;
  const auto link = b.link(1_GBps);
  const TransferId t = b.transfer("all_gather", 1, {0, {{link, 1000}}});  // 1 us
  OperatorGraph graph;
  graph.add(B::compute(b.kernel(900'000)));
  const OperatorId gather = graph.add(B::collective(t));
  const OperatorId user = graph.add(B::compute(b.kernel(50)));
  graph.depends(user, gather);
  b.role({b.block(graph)});
  const ReplayResult result = run(b);
  EXPECT_EQ(result.end, 1'000'050U);
  EXPECT_EQ(result.roles[0].breakdown.exposed_communication, 100'000U);
}

TEST(Replay, AnEarlierTransferOfTheAwaitedStreamIsExposedToo) {
  // Two all-gathers in a row on stream 1, the compute stream needs the second: no other role, so no
  // bubble.
  TestProgramBuilder b;
  const auto link = b.link(1_GBps);
  const TransferId t = b.transfer("all_gather", 1, {0, {{link, 1000}}});
  b.role({b.chain({B::collective(t), B::collective(t), B::compute(b.kernel(50))})});
  const ReplayResult result = run(b);
  EXPECT_EQ(result.roles[0].breakdown.exposed_communication, 2'000'000U);
  EXPECT_EQ(result.roles[0].breakdown.bubble, 0U);
}

TEST(Replay, AStreamThatWaitsForAnotherWaitsForWhatThatOneWaitsFor) {
  // The compute stream needs a gather, which needs a message that the other role sends after 3 us.
  TestProgramBuilder b({"compute", "tensor", "receive"});
  const auto link = b.link(1_GBps);
  const TransferId message = b.transfer("message", 2, {0, {{link, 500}}},
                                        TransferKind::kSendReceive);           // 0.5 us
  const TransferId gather = b.transfer("all_gather", 1, {0, {{link, 1000}}});  // 1 us
  const KernelId brief = b.kernel(50);
  b.role({b.chain({B::receive(message, 2), B::collective(gather, 1), B::compute(brief)})});
  b.role({b.chain({B::compute(b.kernel(3'000'000)), B::send(message, 2)})});
  const ReplayResult result = run(b);
  EXPECT_EQ(result.end, 4'500'050U);
  EXPECT_EQ(result.roles[0].breakdown.bubble, 3'000'000U);
  EXPECT_EQ(result.roles[0].breakdown.exposed_communication, 1'500'000U);
}

TEST(Replay, EachStretchOfAGapCountsAsItsOwnCause) {
  // In turn a gather, a message that the other role sends after 3 us, and an optimizer's kernel on
  // another stream.
  TestProgramBuilder b({"compute", "tensor", "receive", "side"});
  const auto link = b.link(1_GBps);
  const TransferId message = b.transfer("message", 2, {0, {{link, 500}}},
                                        TransferKind::kSendReceive);           // 0.5 us
  const TransferId gather = b.transfer("all_gather", 1, {0, {{link, 1000}}});  // 1 us
  const KernelId brief = b.kernel(50), side = b.kernel(700'000);
  b.role({b.chain({B::collective(gather, 1), B::receive(message, 2),
                   B::compute(side, Category::kOptimizer, 3), B::compute(brief)})});
  b.role({b.chain({B::compute(b.kernel(3'000'000)), B::send(message, 2)})});
  const ReplayResult result = run(b);
  EXPECT_EQ(result.end, 4'200'050U);
  EXPECT_EQ(result.roles[0].breakdown.exposed_communication, 1'000'000U + 500'000U);
  EXPECT_EQ(result.roles[0].breakdown.bubble, 2'000'000U);
  EXPECT_EQ(result.roles[0].breakdown.optimizer, 700'000U);
  EXPECT_EQ(result.roles[0].breakdown.compute, 50U);
}

TEST(Replay, TimeAfterTheLastKernelUntilTheLastTransferIsExposedAndThenIdle) {
  TestProgramBuilder b;
  const auto link = b.link(1_GBps);
  const TransferId t = b.transfer("all_reduce", 1, {0, {{link, 1000}}});
  b.role({b.chain({B::compute(b.kernel(100)), B::collective(t)})});
  b.role({b.chain({B::compute(b.kernel(5'000'000))})});
  const ReplayResult result = run(b);
  EXPECT_EQ(result.roles[0].end, 1'000'100U);
  EXPECT_EQ(result.roles[0].breakdown.exposed_communication, 1'000'000U);
  EXPECT_EQ(result.roles[0].breakdown.idle, 3'999'900U);
}

/// 1F1B (Narayanan et al., "Efficient large-scale language model training on GPU clusters using
/// Megatron-LM", SC 2021, 2.2.1) of equal stages with free messages on streams of their own.
TestProgramBuilder one_f_one_b(int stages, int micro_batches, Picoseconds forward,
                               Picoseconds backward) {
  TestProgramBuilder b(
      {"compute", "send forward", "receive forward", "send backward", "receive backward"});
  const KernelId f = b.kernel(forward);
  const KernelId g = b.kernel(backward);
  std::vector<TransferId> down, up;  // between stage s and s + 1
  for (int s = 0; s + 1 < stages; ++s) {
    down.push_back(
        b.transfer("activations " + std::to_string(s), 2, {}, TransferKind::kSendReceive));
    up.push_back(b.transfer("gradients " + std::to_string(s), 2, {}, TransferKind::kSendReceive));
  }
  for (int s = 0; s < stages; ++s) {
    const auto at = static_cast<std::size_t>(s);
    std::vector<Operator> f_operators = {B::compute(f)}, b_operators = {B::compute(g)};
    if (s > 0) {
      f_operators.insert(f_operators.begin(), B::receive(down[at - 1], 2));
      b_operators.push_back(B::send(up[at - 1], 3));
    }
    if (s + 1 < stages) {
      f_operators.push_back(B::send(down[at], 1));
      b_operators.insert(b_operators.begin(), B::receive(up[at], 4));
    }
    const BlockId f_block = b.chain(f_operators, "forward");
    const BlockId b_block = b.chain(b_operators, "backward");
    const int warm_up = std::min(stages - 1 - s, micro_batches);
    std::vector<BlockId> calls(static_cast<std::size_t>(warm_up), f_block);
    for (int m = 0; m < micro_batches - warm_up; ++m) {
      calls.insert(calls.end(), {f_block, b_block});
    }
    calls.insert(calls.end(), static_cast<std::size_t>(warm_up), b_block);
    b.role(calls);
  }
  return b;
}

TEST(Replay, OneFOneBHasItsBubbleOfPMinusOneSlots) {
  for (const int p : {1, 2, 4, 7}) {
    for (const int m : {1, 4, 8, 13}) {
      if (m < p) {
        continue;  // the formula is that of a filled pipeline
      }
      const ReplayResult result = run(one_f_one_b(p, m, 1000, 2000));
      // A step takes (m + p - 1) slots of one forward and one backward, of which p - 1 are bubble:
      // the fraction (p - 1) / (m + p - 1) of the time, for every stage.
      EXPECT_EQ(result.end, static_cast<Picoseconds>(m + p - 1) * 3000);
      for (const RoleResult& role : result.roles) {
        EXPECT_EQ(role.breakdown.compute, static_cast<Picoseconds>(m) * 3000);
        EXPECT_EQ(role.breakdown.bubble + role.breakdown.idle,
                  static_cast<Picoseconds>(p - 1) * 3000);
        EXPECT_EQ(role.breakdown.exposed_communication, 0U);
      }
    }
  }
}

/// Two alike ranks that exchange on a common link and each use a link of their own: two roles, or
/// one that stands for both and loads the links of both.
TestProgramBuilder symmetric_pair(bool folded) {
  TestProgramBuilder b;
  const std::uint32_t own[] = {b.link(3_GBps), b.link(3_GBps)};
  const auto common = b.link(7_GBps);
  const KernelId k = b.kernel(123'457);
  const TransferId together =
      b.transfer("together", folded ? 1 : 2, {1000, {{common, 2e5}, {own[0], 1e5}, {own[1], 1e5}}});
  const auto make_role = [&](const TransferCost& cost) {
    OperatorGraph graph;
    const TransferId mine = b.transfer("own", 1, cost);
    const OperatorId compute = graph.add(B::compute(k));
    const OperatorId first = graph.add(B::collective(mine));
    const OperatorId second = graph.add(B::collective(together));
    const OperatorId last = graph.add(B::compute(k));
    graph.depends(second, compute);
    graph.depends(second, first);
    graph.depends(last, first);
    const BlockId block = b.block(graph);
    b.role({block, block, block});
  };
  if (folded) {
    make_role({500, {{own[0], 777'777}, {own[1], 777'777}}});
    b.program.roles[0].ranks = {0, 1};
    b.program.ranks = 2;
  } else {
    make_role({500, {{own[0], 777'777}}});
    make_role({500, {{own[1], 777'777}}});
  }
  return b;
}

TEST(Replay, FoldingASymmetricPairChangesNothing) {
  const ReplayResult two = run(symmetric_pair(false));
  const ReplayResult one = run(symmetric_pair(true));
  EXPECT_EQ(one.end, two.end);
  for (const RoleResult& role : two.roles) {
    EXPECT_EQ(role.end, one.roles[0].end);
    EXPECT_EQ(role.breakdown.exposed_communication, one.roles[0].breakdown.exposed_communication);
    EXPECT_EQ(role.breakdown.compute, one.roles[0].breakdown.compute);
  }
  EXPECT_EQ(one.link_bytes, two.link_bytes);
}

void expect_equal(const ReplayResult& a, const ReplayResult& b) {
  EXPECT_EQ(a.end, b.end);
  EXPECT_EQ(a.events, b.events);
  EXPECT_EQ(a.link_bytes, b.link_bytes);
  ASSERT_EQ(a.roles.size(), b.roles.size());
  for (std::size_t r = 0; r < a.roles.size(); ++r) {
    EXPECT_EQ(a.roles[r].end, b.roles[r].end);
    EXPECT_EQ(a.roles[r].breakdown.bubble, b.roles[r].breakdown.bubble);
    EXPECT_EQ(a.roles[r].breakdown.exposed_communication,
              b.roles[r].breakdown.exposed_communication);
  }
}

TEST(Replay, TwoReplaysInOneProcessAreIdentical) {
  const TestProgramBuilder b = one_f_one_b(4, 16, 1234, 2345);
  expect_equal(run(b), run(b));
}

// Steps under a power cap are replayed at one clock after the other, over the same links.
TEST(Replay, LinksWorkedOutOnceServeSeveralReplays) {
  const TestProgramBuilder b = one_f_one_b(4, 16, 1234, 2345);
  const FlowNetwork links = idle_links(b.costs);
  ReplayOptions options;
  options.links = &links;
  for (int i = 0; i < 2; ++i) expect_equal(replay(b.program, b.costs, options), run(b));
}

TEST(Replay, ResultsDoNotDependOnAddresses) {
  const TestProgramBuilder b = symmetric_pair(false);
  const ReplayResult first = run(b);
  // Copies and other live allocations move everything in memory.
  const std::vector<TestProgramBuilder> copies(5, b);
  for (const TestProgramBuilder& copy : copies) {
    expect_equal(first, run(copy));
  }
}

TEST(Replay, TimeBeyondTheLimitIsAnOverflow) {
  TestProgramBuilder b;
  const KernelId k = b.kernel(kMaxTime / 2 + 1);
  b.role({b.chain({B::compute(k), B::compute(k)})});
  EXPECT_THROW(replay(b.program, b.costs), std::overflow_error);
  b.costs.kernels[k].duration = kMaxTime + 1;
  EXPECT_THROW(replay(b.program, b.costs), std::overflow_error);
}

TEST(Replay, GivesTheTimelineOneSpanPerOperator) {
  TestProgramBuilder b;
  const auto link = b.link(1_GBps);
  const TransferId t = b.transfer("all_reduce", 1, {0, {{link, 1000}}});
  b.role({b.chain({B::compute(b.kernel(100)), B::collective(t, 1, "gradients")})});
  std::ostringstream out;
  Timeline timeline(out);
  replay(b.program, b.costs, {.timeline = &timeline});
  timeline.close();
  for (const char* text : {"role 0", "communication", "gradients", "compute"}) {
    EXPECT_THAT(out.str(), testing::HasSubstr(text));
  }
}

TEST(Replay, CostsOfAnotherProgramAreABug) {
  TestProgramBuilder b;
  b.role({b.chain({B::compute(b.kernel(1))})});
  b.costs.kernels.clear();
  EXPECT_THROW(replay(b.program, b.costs), std::logic_error);
}

}  // namespace
}  // namespace orrery::replay_test
