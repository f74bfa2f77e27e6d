// SPDX-License-Identifier: Apache-2.0
#include "sim/replay/graph_replay.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <sstream>
#include <string>
#include <vector>

#include "sim/trace/timeline.h"
#include "tests/unit/replay/graph_builder.h"

namespace orrery::graph_replay_test {
namespace {

using test::ends_of;
using test::GraphOf;
using test::kFirst;
using test::kLoose;
using test::kSecond;
using test::message;
using test::OnOneLink;
using test::replay_on_one_link;
using test::run_of;
using test::share_devices;
using test::SlowedBy;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

std::string mismatch_of(const ImportedRun& run) {
  try {
    replay_on_one_link(run);
  } catch (const GraphMismatch& error) {
    return error.what();
  }
  return {};
}

TEST(GraphReplay, AStreamRunsOneNodeAtATimeTheFirstOfTheFileFirst) {
  GraphOf rank;
  rank.kernel(5);                                  // 0 to 5
  const NodeId late = rank.kernel(7, {}, kFirst);  // 5 to 12
  rank.kernel(100, {late}, kSecond);               // 12 to 112
  rank.kernel(40, {0}, kFirst);                    // 12 to 52
  const GraphReplayResult result = replay(run_of({rank}), {});
  EXPECT_EQ(result.end, 112U);
  EXPECT_EQ(result.operators, 4U);
  EXPECT_THAT(result.stream_busy, ElementsAre(52U, 100U, 0U));
  EXPECT_EQ(result.breakdown().compute, 112U);
}

TEST(GraphReplay, NodesOfAStreamThatIsNotSerialRunSideBySide) {
  GraphOf rank;
  rank.kernel(50, {}, kLoose);
  rank.kernel(70, {}, kLoose);
  EXPECT_EQ(replay(run_of({rank}), {}).end, 70U);
}

TEST(GraphReplay, ACollectiveStartsWhenTheLastRankHasComeAndTakesLatencyThenBytes) {
  std::vector<GraphOf> ranks(2);
  ranks[0].collective(1000, {ranks[0].kernel(10)});
  ranks[1].collective(1000, {ranks[1].kernel(300)});
  ranks[1].kernel(5, {1});
  const GraphReplayResult result = replay_on_one_link(run_of(ranks), 20);
  EXPECT_THAT(ends_of(result), ElementsAre(1320U, 1325U));
  EXPECT_EQ(result.last_role, 1);
  EXPECT_EQ(result.breakdown().compute, 305U);
  EXPECT_EQ(result.breakdown().exposed_communication, 1020U);
  EXPECT_DOUBLE_EQ(result.link_bytes[0], 1000);
  EXPECT_DOUBLE_EQ(result.link_busy_s[0], 1e-9);
}

TEST(GraphReplay, WhoWaitsForAPeerIsInABubble) {
  std::vector<GraphOf> ranks(2);
  ranks[0].kernel(1000, {ranks[0].collective(100)});
  ranks[1].collective(100, {ranks[1].kernel(300)});
  const GraphReplayResult result = replay_on_one_link(run_of(ranks), 0);
  EXPECT_EQ(result.last_role, 0);
  EXPECT_EQ(result.breakdown().bubble, 300U);
  EXPECT_EQ(result.breakdown().exposed_communication, 100U);
  EXPECT_EQ(result.breakdown().compute, 1000U);
}

TEST(GraphReplay, TransfersShareALink) {
  std::vector<GraphOf> ranks(4);
  for (const int source : {0, 2}) {
    ranks[static_cast<std::size_t>(source)].communicates(NodeKind::kSend, message(source + 1, 600));
    ranks[static_cast<std::size_t>(source + 1)].communicates(NodeKind::kReceive,
                                                             message(source, 600));
  }
  const GraphReplayResult result = replay_on_one_link(run_of(ranks), 0);
  EXPECT_THAT(ends_of(result), ElementsAre(1200U, 1200U, 1200U, 1200U));
}

TEST(GraphReplay, MessagesMeetBySourceDestinationAndTagInOrder) {
  std::vector<GraphOf> ranks(2);
  ranks[0].communicates(NodeKind::kSend, message(1, 100, 7));
  ranks[0].communicates(NodeKind::kSend, message(1, 50, 8));
  ranks[1].communicates(NodeKind::kReceive, message(0, 50, 8), {ranks[1].kernel(1000)});
  ranks[1].communicates(NodeKind::kReceive, message(0, 100, 7));
  EXPECT_THAT(ends_of(replay_on_one_link(run_of(ranks), 0)), ElementsAre(1050U, 1050U));
}

TEST(GraphReplay, RecordedTimesOfTransfersCountFromTheLastRankAndWithoutItsWaits) {
  std::vector<GraphOf> ranks(2);
  ranks[0].collective(1000, {}, ImportedMessage::kWorld, 340);  // 300 of it are waits
  ranks[1].collective(1000, {ranks[1].kernel(300)}, ImportedMessage::kWorld, 40);
  const ImportedRun run = run_of(ranks);
  OnOneLink prices(run);
  prices.nodes.recorded_transfers = true;
  EXPECT_EQ(replay(run, prices.nodes, prices.costs).end, 340U);
  prices.nodes.recorded_scale = 0.5;
  EXPECT_EQ(replay(run, prices.nodes, prices.costs).end, 320U);
  prices.nodes.recorded_transfers = false;
  EXPECT_EQ(replay(run, prices.nodes, prices.costs).end, 1300U) << "all of the bytes";
}

TEST(GraphReplay, RanksWithoutAGraphComeWithTheOthers) {
  std::vector<GraphOf> ranks(1);
  ranks[0].collective(1000, {ranks[0].kernel(10)});
  ImportedRun run = run_of(ranks);
  run.graph_of_rank = {ImportedRun::kAbsent, 0, ImportedRun::kAbsent};
  const GraphReplayResult result = replay_on_one_link(run, 0);
  EXPECT_THAT(ends_of(result), ElementsAre(0U, 1010U, 0U));
}

TEST(GraphReplay, RanksThatShareAGraphAreReplayedEachOnItsOwn) {
  std::vector<GraphOf> ranks(1);
  ranks[0].collective(1000, {ranks[0].kernel(10)});
  ImportedRun run = run_of(ranks);
  run.graph_of_rank = {0, 0, 0};
  const GraphReplayResult result = replay_on_one_link(run, 0);
  EXPECT_THAT(ends_of(result), ElementsAre(1010U, 1010U, 1010U));
  EXPECT_EQ(result.operators, 6U);
}

// A timeline refuses spans of one track that overlap.
TEST(GraphReplay, NodesThatRunSideBySideHaveTracksOfTheirOwn) {
  GraphOf rank;
  rank.kernel(50'000, {}, kLoose);
  rank.kernel(70'000, {}, kLoose);
  rank.kernel(30'000, {0}, kLoose);
  rank.kernel(40'000);
  std::ostringstream out;
  Timeline timeline(out);
  GraphReplayOptions options;
  options.timeline = &timeline;
  replay(run_of({rank}), {}, {}, options);
  timeline.close();
  EXPECT_THAT(out.str(), AllOf(HasSubstr("side by side 1"), HasSubstr("side by side 2")));
  EXPECT_THAT(out.str(), testing::Not(HasSubstr("side by side 3")));
}

TEST(GraphReplay, CollectivesThatDifferAreRefusedByRankAndNode) {
  std::vector<GraphOf> ranks(2);
  ranks[0].collective(1000);
  ranks[1].collective(2000);
  EXPECT_THAT(mismatch_of(run_of(ranks)),
              AllOf(HasSubstr("node 100 'n0' of rank 0 meets node 100 'n0' of rank 1"),
                    HasSubstr("one has 1000 B, the other 2000 B")));
}

TEST(GraphReplay, AGroupWithARankThatIsNotThereIsRefused) {
  std::vector<GraphOf> ranks(1);
  ranks[0].collective(1000, {}, 0);
  ImportedRun run = run_of(ranks);
  run.groups = {{0, 5}};
  EXPECT_THAT(mismatch_of(run), HasSubstr("its group has rank 5, the run has 1 ranks"));
  run.groups = {{}};
  EXPECT_THAT(mismatch_of(run), HasSubstr("no ranks"));
}

TEST(GraphReplay, ADeadlockNamesWhoWaitsForWhom) {
  std::vector<GraphOf> ranks(2);
  ranks[0].collective(1000);
  ranks[1].kernel(10);
  try {
    replay_on_one_link(run_of(ranks), 0);
    FAIL() << "nobody comes";
  } catch (const DeadlockError& error) {
    EXPECT_THAT(error.what(), HasSubstr("node 100 'n0' of rank 0, all_reduce, waits for rank 1"));
  }
}

/// Rank 0 computes for 1000 ps while it and rank 1 reduce 600 bytes.
std::vector<GraphOf> overlapping() {
  std::vector<GraphOf> ranks(2);
  ranks[0].kernel(1000);
  ranks[0].collective(600);
  ranks[1].collective(600);
  return ranks;
}

// 300 ps of the work are done when the bytes have come, at 600 ps, and 700 are left.
TEST(GraphReplay, AKernelBesideATransferWorksAtHalfOfItsSpeed) {
  const ImportedRun run = run_of(overlapping());
  OnOneLink prices(run);
  share_devices(run, prices);
  SlowedBy twice(2);
  GraphReplayOptions options;
  options.slowdowns = &twice;
  const GraphReplayResult result = replay(run, prices.nodes, prices.costs, options);
  EXPECT_THAT(ends_of(result), ElementsAre(1300U, 600U));
  EXPECT_EQ(result.breakdown().compute, 1000U);
  EXPECT_EQ(result.breakdown().contention, 300U);
}

TEST(GraphReplay, AFixedTimeStaysBesideATransfer) {
  const ImportedRun run = run_of(overlapping());
  OnOneLink prices(run);
  share_devices(run, prices, true);
  SlowedBy twice(2);
  GraphReplayOptions options;
  options.slowdowns = &twice;
  const GraphReplayResult result = replay(run, prices.nodes, prices.costs, options);
  EXPECT_THAT(ends_of(result), ElementsAre(1000U, 600U));
  EXPECT_EQ(result.breakdown().contention, 0U);
}

TEST(GraphReplay, KernelsThatAreSlowedTogetherCountOnce) {
  std::vector<GraphOf> ranks = overlapping();
  ranks[0].kernel(1000, {}, kSecond);
  const ImportedRun run = run_of(ranks);
  OnOneLink prices(run);
  share_devices(run, prices);
  SlowedBy twice(2);
  GraphReplayOptions options;
  options.slowdowns = &twice;
  const TimeBreakdown time = replay(run, prices.nodes, prices.costs, options).breakdown();
  EXPECT_EQ(time.contention, 300U);
  EXPECT_EQ(time.compute, 1000U);
}

TEST(GraphReplay, TheLongestChainHasTheTimeThatKernelsTakeLonger) {
  const ImportedRun run = run_of(overlapping());
  OnOneLink prices(run);
  share_devices(run, prices);
  SlowedBy twice(2);
  GraphReplayOptions options;
  options.slowdowns = &twice;
  Picoseconds chain = 0;
  options.chain = [&](std::uint32_t, NodeId, Picoseconds time) { chain += time; };
  EXPECT_EQ(replay(run, prices.nodes, prices.costs, options).end, chain);
}

// Two flights of one transfer.
TEST(GraphReplay, EqualMessagesAtOnceShareTheirLink) {
  std::vector<GraphOf> ranks(2);
  for (const std::int64_t tag : {1, 2}) {
    ranks[0].communicates(NodeKind::kSend, message(1, 600, tag));
    ranks[1].communicates(NodeKind::kReceive, message(0, 600, tag));
  }
  const ImportedRun run = run_of(ranks);
  const OnOneLink prices(run);
  ASSERT_EQ(prices.transfers.list().size(), 1U);
  const GraphReplayResult result = replay(run, prices.nodes, prices.costs);
  EXPECT_THAT(ends_of(result), ElementsAre(1200U, 1200U));
  EXPECT_DOUBLE_EQ(result.link_bytes[0], 1200);
}

TEST(GraphReplay, AllFlightsOfATransferTakeItsOtherWay) {
  std::vector<GraphOf> ranks(2);
  for (const std::int64_t tag : {1, 2, 3}) {
    const std::vector<NodeId> after =
        tag == 3 ? std::vector<NodeId>{ranks[0].kernel(2000)} : std::vector<NodeId>{};
    ranks[0].communicates(NodeKind::kSend, message(1, 600, tag), after);
    ranks[1].communicates(NodeKind::kReceive, message(0, 600, tag));
  }
  const ImportedRun run = run_of(ranks);
  OnOneLink prices(run);
  prices.costs.links.push_back(BytesPerSecond(0.5e12));
  LinkEvent event{600, 0, BytesPerSecond(0), {}};
  event.reroutes.push_back({0, {{1, 600, 600}}, 0});
  prices.costs.link_events = {event};
  // Each of two has 300 bytes left at 600 ps: 1200 ps at a quarter of a byte/ps. The third takes
  // 1200 ps alone.
  const GraphReplayResult result = replay(run, prices.nodes, prices.costs);
  EXPECT_THAT(ends_of(result), ElementsAre(3200U, 3200U));
  EXPECT_DOUBLE_EQ(result.link_bytes[0], 600);
  EXPECT_DOUBLE_EQ(result.link_bytes[1], 1200);
}

TEST(GraphReplay, ADeadLinkIsNamed) {
  std::vector<GraphOf> ranks(2);
  for (GraphOf& rank : ranks) rank.collective(600);
  const ImportedRun run = run_of(ranks);
  OnOneLink prices(run);
  prices.costs.link_events = {{100, 0, BytesPerSecond(0), {}}};
  try {
    replay(run, prices.nodes, prices.costs);
    FAIL() << "nothing moves";
  } catch (const LinkDownError& error) {
    EXPECT_THAT(error.what(), AllOf(HasSubstr("all_reduce of rank 0 stands still: link 0 is down"),
                                    HasSubstr("no other way")));
  }
}

/// Counts what it is told of.
struct Watcher final : UseObserver {
  void kernel_ran(std::uint32_t role, KernelId, Picoseconds begin, Picoseconds end) override {
    kernels.push_back({role, begin, end});
  }
  void transfer_ran(std::uint32_t role, TransferId, Picoseconds begin, Picoseconds end) override {
    transfers.push_back({role, begin, end});
  }
  std::vector<std::array<Picoseconds, 3>> kernels, transfers;
};

TEST(GraphReplay, AnObserverIsToldOfKernelsAndOfEachRankOfATransfer) {
  const ImportedRun run = run_of(overlapping());
  OnOneLink prices(run);
  share_devices(run, prices);
  Watcher watcher;
  GraphReplayOptions options;
  options.observer = &watcher;
  replay(run, prices.nodes, prices.costs, options);
  using Use = std::array<Picoseconds, 3>;
  EXPECT_THAT(watcher.kernels, ElementsAre(Use{0, 0, 1000}));
  EXPECT_THAT(watcher.transfers, ElementsAre(Use{0, 0, 600}, Use{1, 0, 600}));
}

}  // namespace
}  // namespace orrery::graph_replay_test
