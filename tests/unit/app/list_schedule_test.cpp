// SPDX-License-Identifier: Apache-2.0
#include "sim/app/pricing/list_schedule.h"

#include <gtest/gtest.h>

namespace orrery::list_schedule_test {
namespace {

double twice(std::size_t) { return 2; }
double alike(std::size_t) { return 1; }

// From 2 to 6 a transfer is in flight: the kernel does 2 of its 10 before it, 2 during it at half
// its rate, and the other 6 behind it.
TEST(ListSchedule, AKernelIsSlowerWhileATransferIsInFlight) {
  ListSchedule schedule(1);
  EXPECT_DOUBLE_EQ(schedule.transfer(0, 2, 4, 0), 6);
  EXPECT_DOUBLE_EQ(schedule.kernel(0, 10, twice), 12);
}

TEST(ListSchedule, TransfersOfOneStreamFollowEachOtherAndThoseOfTwoDoNot) {
  ListSchedule schedule(2);
  EXPECT_DOUBLE_EQ(schedule.transfer(0, 0, 4, 0), 4);
  EXPECT_DOUBLE_EQ(schedule.transfer(0, 1, 4, 1), 8);
  EXPECT_DOUBLE_EQ(schedule.transfer(1, 1, 4, 2), 5);
}

TEST(ListSchedule, AKernelWaitsForWhatItNeedsAndForTheKernelBeforeIt) {
  ListSchedule schedule(1);
  EXPECT_DOUBLE_EQ(schedule.kernel(3, 2, alike), 5);
  EXPECT_DOUBLE_EQ(schedule.kernel(0, 2, alike), 7);
  EXPECT_DOUBLE_EQ(schedule.compute(), 7);
}

TEST(ListSchedule, ATransferThatEndedSlowsNothing) {
  ListSchedule schedule(1);
  schedule.transfer(0, 0, 4, 0);
  EXPECT_DOUBLE_EQ(schedule.kernel(4, 3, twice), 7);
}

}  // namespace
}  // namespace orrery::list_schedule_test
