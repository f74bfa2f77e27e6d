// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "sim/replay/replay.h"
#include "tests/unit/replay/program_builder.h"

namespace orrery::deadlock_test {
namespace {

using testing::HasSubstr;
using testing::Not;
using B = TestProgramBuilder;

std::string deadlock_text(const TestProgramBuilder& b) {
  try {
    replay(b.program, b.costs);
  } catch (const DeadlockError& error) {
    return error.what();
  }
  return "no deadlock";
}

TEST(Deadlock, OppositeOrdersOfTwoCollectivesNameTheCycle) {
  TestProgramBuilder b;
  const TransferId x = b.transfer("x", 2);
  const TransferId y = b.transfer("y", 2);
  b.role({b.chain({B::collective(x, 1, "first x"), B::collective(y, 1, "then y")}, "forward")});
  b.role({b.chain({B::collective(y, 1, "first y"), B::collective(x, 1, "then x")}, "forward")});
  const std::string text = deadlock_text(b);
  EXPECT_THAT(text, HasSubstr("deadlock: 2 streams cannot go on"));
  EXPECT_THAT(text,
              HasSubstr("role 'role 0', stream 'communication', call 0 (block 'forward'): "
                        "operator 'first x' waits in transfer 'x' (2 participants), posted by "
                        "role 'role 0', not by role 'role 1'"));
  EXPECT_THAT(text, HasSubstr("operator 'first y' waits in transfer 'y'"));
  EXPECT_THAT(text, HasSubstr("cycle: role 'role 0', stream 'communication'"));
  EXPECT_THAT(text, HasSubstr("waits for the first"));
}

TEST(Deadlock, AMissingPeerIsNamedAndThereIsNoCycle) {
  TestProgramBuilder b;
  const TransferId x = b.transfer("x", 2);
  const BlockId block = b.chain({B::collective(x), B::compute(b.kernel(5))});
  b.role({block, block});
  b.role({block});  // calls it once only
  const std::string text = deadlock_text(b);
  EXPECT_THAT(text, HasSubstr("posted by role 'role 0', not by role 'role 1'"));
  EXPECT_THAT(text, HasSubstr("operator 'compute' waits for stream 'communication' of its role"));
  EXPECT_THAT(text, Not(HasSubstr("cycle")));
}

TEST(Deadlock, TheNextReplayIsUnharmed) {
  TestProgramBuilder stuck;
  stuck.role({stuck.chain({B::collective(stuck.transfer("x", 2))})});
  EXPECT_THAT(deadlock_text(stuck), HasSubstr("not by any other role of the program"));
  TestProgramBuilder fine;
  fine.role({fine.chain({B::compute(fine.kernel(77))})});
  EXPECT_EQ(replay(fine.program, fine.costs).end, 77U);
}

}  // namespace
}  // namespace orrery::deadlock_test
