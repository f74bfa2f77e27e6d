// SPDX-License-Identifier: Apache-2.0
// Programs on links that degrade, fail and come back at given times.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <stdexcept>
#include <string>
#include <vector>

#include "sim/replay/replay.h"
#include "tests/unit/replay/program_builder.h"

namespace orrery::link_event_replay_test {
namespace {

using namespace literals;
using testing::HasSubstr;
using B = TestProgramBuilder;

constexpr Picoseconds kMillisecond = 1'000'000'000;

/// One role that sends 4 MB twice over a link of 1 GB/s.
TestProgramBuilder two_transfers() {
  TestProgramBuilder b;
  const auto link = b.link(1_GBps);
  b.link(1_GBps);
  const TransferId t = b.transfer("gradients", 1, {0, {{link, 4e6}}});
  const BlockId block = b.chain({B::collective(t)});
  b.role({block, block});
  return b;
}

TEST(ReplayedLinkEvent, ADegradedLinkCarriesTheSameBytesLater) {
  TestProgramBuilder b = two_transfers();
  // After 1 ms 3 MB of the first are left: 6 ms at half the rate, then 8 ms for the second.
  b.costs.link_events = {{kMillisecond, 0, BytesPerSecond(0.5e9), {}}};
  const ReplayResult result = replay(b.program, b.costs);
  EXPECT_EQ(result.end, 15 * kMillisecond);
  EXPECT_EQ(result.link_bytes, (std::vector<double>{8e6, 0}));
}

TEST(ReplayedLinkEvent, ALinkThatComesBackGoesOnWithWhatWasLeft) {
  TestProgramBuilder b = two_transfers();
  b.costs.link_events = {{5 * kMillisecond, 0, 1_GBps, {}},
                         {kMillisecond, 0, BytesPerSecond(0.0), {}}};  // in any order
  EXPECT_EQ(replay(b.program, b.costs).end, 12 * kMillisecond);
}

TEST(ReplayedLinkEvent, ADeadLinkWithoutAnotherWayEndsTheRunWithBothNames) {
  TestProgramBuilder b = two_transfers();
  b.costs.link_events = {{kMillisecond, 0, BytesPerSecond(0.0), {}}};
  try {
    replay(b.program, b.costs);
    FAIL() << "the run ends although its link is down";
  } catch (const LinkDownError& error) {
    EXPECT_THAT(error.what(), HasSubstr("transfer 'gradients'"));
    EXPECT_THAT(error.what(), HasSubstr("link 0 is down from 1.00 ms on"));
  }
}

TEST(ReplayedLinkEvent, AReroutedTransferTakesItsBytesOverTheOtherLink) {
  TestProgramBuilder b = two_transfers();
  // 1 MB of the first has gone over link 0. The other 3 MB, and all of the second, take link 1.
  b.costs.link_events = {{kMillisecond, 0, BytesPerSecond(0.0), {{0, {{1, 4e6}}}}}};
  const ReplayResult result = replay(b.program, b.costs);
  EXPECT_EQ(result.end, 8 * kMillisecond);
  EXPECT_DOUBLE_EQ(result.link_bytes[0], 1e6);
  EXPECT_DOUBLE_EQ(result.link_bytes[1], 7e6);
}

TEST(ReplayedLinkEvent, ATransferMayChangeItsWayTwice) {
  TestProgramBuilder b = two_transfers();
  b.costs.link_events = {{kMillisecond, 0, 1_GBps, {{0, {{1, 8e6}}}}},
                         {3 * kMillisecond, 1, 1_GBps, {{0, {{0, 4e6}}}}}};
  // 1 MB, then 2 MB of 8 MB (a quarter), then the half that is left, then 4 MB.
  const ReplayResult result = replay(b.program, b.costs);
  EXPECT_EQ(result.end, 9 * kMillisecond);
  EXPECT_DOUBLE_EQ(result.link_bytes[0], 7e6);
  EXPECT_DOUBLE_EQ(result.link_bytes[1], 2e6);
}

TEST(ReplayedLinkEvent, AnEventAfterTheEndChangesNothing) {
  TestProgramBuilder b = two_transfers();
  b.costs.link_events = {{20 * kMillisecond, 0, BytesPerSecond(0.0), {}}};
  EXPECT_EQ(replay(b.program, b.costs).end, 8 * kMillisecond);
}

TEST(ReplayedLinkEvent, ALinkIsBusyForWhatItCarriesAtTheCapacityThatItHas) {
  TestProgramBuilder b = two_transfers();
  b.costs.transfers[0].loads.change([](LinkLoad& load) { load.payload = 3e6; });
  ReplayResult result = replay(b.program, b.costs);
  EXPECT_DOUBLE_EQ(result.link_busy_s[0], 8e-3);
  EXPECT_EQ(result.link_busy_s[1], 0);
  EXPECT_EQ(result.link_payload, (std::vector<double>{6e6, 0}));
  // Half the rate from 1 ms on: never idle. Down from 1 to 5 ms: idle for 4 ms.
  b.costs.link_events = {{kMillisecond, 0, BytesPerSecond(0.5e9), {}}};
  EXPECT_DOUBLE_EQ(replay(b.program, b.costs).link_busy_s[0], 15e-3);
  b.costs.link_events = {{kMillisecond, 0, BytesPerSecond(0.0), {}},
                         {5 * kMillisecond, 0, 1_GBps, {}}};
  EXPECT_DOUBLE_EQ(replay(b.program, b.costs).link_busy_s[0], 8e-3);
}

TEST(ReplayedLinkEvent, PayloadGoesWithTheBytesOfEachWay) {
  TestProgramBuilder b = two_transfers();
  b.costs.transfers[0].loads.change([](LinkLoad& load) { load.payload = 2e6; });
  b.costs.link_events = {{kMillisecond, 0, BytesPerSecond(0.0), {{0, {{1, 4e6, 2e6}}}}}};
  const ReplayResult result = replay(b.program, b.costs);
  EXPECT_DOUBLE_EQ(result.link_payload[0], 0.5e6);
  EXPECT_DOUBLE_EQ(result.link_payload[1], 3.5e6);
  EXPECT_DOUBLE_EQ(result.link_busy_s[0], 1e-3);
  EXPECT_DOUBLE_EQ(result.link_busy_s[1], 7e-3);
}

TEST(ReplayedLinkEvent, RejectsUnknownLinksAndTransfers) {
  TestProgramBuilder b = two_transfers();
  b.costs.link_events = {{0, 7, 1_GBps, {}}};
  EXPECT_THROW(replay(b.program, b.costs), std::logic_error);
  b.costs.link_events = {{0, 0, 1_GBps, {{3, {}}}}};
  EXPECT_THROW(replay(b.program, b.costs), std::logic_error);
}

}  // namespace
}  // namespace orrery::link_event_replay_test
