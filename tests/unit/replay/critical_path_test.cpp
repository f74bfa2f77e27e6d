// SPDX-License-Identifier: Apache-2.0
#include "sim/replay/critical_path.h"

#include <gtest/gtest.h>

#include "sim/replay/replay.h"
#include "tests/unit/replay/program_builder.h"

namespace orrery::critical_path_test {
namespace {

using B = TestProgramBuilder;

/// The second rank is ready at 50, the first at 100: the transfer that both meet for begins then.
TEST(CriticalPath, GoesThroughTheRankThatTheOthersWaitFor) {
  TestProgramBuilder b;
  const KernelId early = b.kernel(50), late = b.kernel(100), last = b.kernel(20);
  const TransferId meeting = b.transfer("meeting", 2, {30, {}});
  b.role({b.chain({B::compute(late), B::collective(meeting)})});
  b.role({b.chain({B::compute(early), B::collective(meeting), B::compute(last)})});
  CriticalPath path;
  ReplayOptions options;
  options.path = &path;
  EXPECT_EQ(replay(b.program, b.costs, options).end, 150U);
  const std::vector<PathStep> steps = path.steps();
  ASSERT_EQ(steps.size(), 3U);
  EXPECT_EQ(steps[0].role, 0U);
  EXPECT_EQ(steps[0].work, late);
  EXPECT_EQ(steps[1].kind, OperatorKind::kCollective);
  EXPECT_EQ(steps[1].begin, 100U);
  EXPECT_EQ(steps[2].role, 1U);
  EXPECT_EQ(steps[2].work, last);
  EXPECT_EQ(steps[2].end, 150U);
}

/// A kernel on the compute stream waits for one of another stream, which took longer.
TEST(CriticalPath, GoesOverToTheStreamThatAKernelWaitsFor) {
  TestProgramBuilder b;
  const KernelId brief = b.kernel(10), last = b.kernel(20);
  const TransferId copy = b.transfer("copy", 1, {70, {}});
  OperatorGraph graph;
  graph.add(B::compute(brief));
  const OperatorId copied = graph.add(B::collective(copy));
  graph.depends(graph.add(B::compute(last)), copied);
  b.role({b.block(std::move(graph))});
  CriticalPath path;
  ReplayOptions options;
  options.path = &path;
  EXPECT_EQ(replay(b.program, b.costs, options).end, 90U);
  const std::vector<PathStep> steps = path.steps();
  ASSERT_EQ(steps.size(), 2U);
  EXPECT_EQ(steps[0].work, copy);
  EXPECT_EQ(steps[0].end, 70U);
  EXPECT_EQ(steps[1].work, last);
}

}  // namespace
}  // namespace orrery::critical_path_test
