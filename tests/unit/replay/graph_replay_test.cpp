// SPDX-License-Identifier: Apache-2.0
#include "sim/replay/graph_replay.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "sim/trace/timeline.h"

namespace orrery::graph_replay_test {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

constexpr std::uint16_t kFirst = 0, kSecond = 1, kLoose = 2;

/// A graph whose nodes are added one by one, on two serial streams and one that is not.
class GraphOf {
 public:
  GraphOf() { graph_.streams = {{"first", true}, {"second", true}, {"loose", false}}; }

  NodeId kernel(Picoseconds time, std::vector<NodeId> after = {}, std::uint16_t stream = kFirst) {
    NodeWork work;
    work.recorded = time;
    work.timed = true;
    graph_.works.push_back(work);
    return add(NodeKind::kKernel, graph_.works.size() - 1, std::move(after), stream);
  }
  NodeId communicates(NodeKind kind, const ImportedMessage& message, std::vector<NodeId> after = {},
                      std::uint16_t stream = kLoose) {
    graph_.messages.push_back(message);
    return add(kind, graph_.messages.size() - 1, std::move(after), stream);
  }
  NodeId collective(double bytes, std::vector<NodeId> after = {},
                    std::uint32_t group = ImportedMessage::kWorld, Picoseconds recorded = 0) {
    ImportedMessage message;
    message.bytes = Bytes(bytes);
    message.group = group;
    message.recorded = recorded;
    return communicates(NodeKind::kCollective, message, std::move(after));
  }

  ImportedGraph finished() {
    ImportedGraph graph = graph_;
    graph.nodes.emplace_back();
    for (NodeId node = 0; node < graph.ids.size(); ++node) {
      graph.nodes[node].first_next = static_cast<std::uint32_t>(graph.next.size());
      for (NodeId later = 0; later < after_.size(); ++later)
        for (const NodeId earlier : after_[later])
          if (earlier == node) graph.next.push_back(later);
    }
    graph.nodes.back().first_next = static_cast<std::uint32_t>(graph.next.size());
    return graph;
  }

 private:
  NodeId add(NodeKind kind, std::size_t work, std::vector<NodeId> after, std::uint16_t stream) {
    const auto number = static_cast<NodeId>(graph_.ids.size());
    graph_.ids.push_back(100 + number);
    graph_.names.push_back(graph_.pool.append("n" + std::to_string(number)));
    graph_.nodes.push_back({static_cast<std::uint32_t>(work), 0,
                            static_cast<std::uint32_t>(after.size()), stream, kind});
    after_.push_back(std::move(after));
    return number;
  }

  ImportedGraph graph_;
  std::vector<std::vector<NodeId>> after_;
};

ImportedRun run_of(std::vector<GraphOf> ranks) {
  ImportedRun run;
  for (GraphOf& rank : ranks) {
    run.graph_of_rank.push_back(static_cast<std::uint32_t>(run.graphs.size()));
    run.graphs.push_back(rank.finished());
  }
  return run;
}

/// One link of 1 byte/ps; a transfer takes `latency` and then its bytes on it.
GraphCosts one_link(Picoseconds latency) {
  GraphCosts costs;
  costs.links = {BytesPerSecond(1e12)};
  costs.transfer = [latency](const Transfer& transfer) {
    TransferCost cost;
    cost.latency = latency;
    cost.loads = {{0, transfer.bytes.base(), transfer.bytes.base()}};
    return cost;
  };
  return costs;
}

std::string mismatch_of(const ImportedRun& run) {
  try {
    replay(run, one_link(0));
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
  EXPECT_EQ(result.nodes, 4U);
  EXPECT_THAT(result.stream_busy, ElementsAre(52U, 100U, 0U));
  EXPECT_EQ(result.breakdown.compute, 112U);
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
  const GraphReplayResult result = replay(run_of(ranks), one_link(20));
  EXPECT_THAT(result.rank_end, ElementsAre(1320U, 1325U));
  EXPECT_EQ(result.last_rank, 1);
  EXPECT_EQ(result.breakdown.compute, 305U);
  EXPECT_EQ(result.breakdown.exposed_communication, 1020U);
  EXPECT_DOUBLE_EQ(result.link_bytes[0], 1000);
  EXPECT_DOUBLE_EQ(result.link_busy_s[0], 1e-9);
}

TEST(GraphReplay, WhoWaitsForAPeerIsInABubble) {
  std::vector<GraphOf> ranks(2);
  ranks[0].kernel(1000, {ranks[0].collective(100)});
  ranks[1].collective(100, {ranks[1].kernel(300)});
  const GraphReplayResult result = replay(run_of(ranks), one_link(0));
  EXPECT_EQ(result.last_rank, 0);
  EXPECT_EQ(result.breakdown.bubble, 300U);
  EXPECT_EQ(result.breakdown.exposed_communication, 100U);
  EXPECT_EQ(result.breakdown.compute, 1000U);
}

TEST(GraphReplay, TransfersShareALink) {
  std::vector<GraphOf> ranks(4);
  const auto send = [](int peer) {
    ImportedMessage message;
    message.kind = TransferKind::kSendReceive;
    message.bytes = Bytes(600);
    message.peer = peer;
    return message;
  };
  for (const int source : {0, 2}) {
    ranks[static_cast<std::size_t>(source)].communicates(NodeKind::kSend, send(source + 1));
    ranks[static_cast<std::size_t>(source + 1)].communicates(NodeKind::kReceive, send(source));
  }
  const GraphReplayResult result = replay(run_of(ranks), one_link(0));
  EXPECT_THAT(result.rank_end, ElementsAre(1200U, 1200U, 1200U, 1200U));
}

TEST(GraphReplay, MessagesMeetBySourceDestinationAndTagInOrder) {
  std::vector<GraphOf> ranks(2);
  const auto message = [](int peer, std::int64_t tag, double bytes) {
    ImportedMessage m;
    m.kind = TransferKind::kSendReceive;
    m.bytes = Bytes(bytes);
    m.peer = peer;
    m.tag = tag;
    return m;
  };
  ranks[0].communicates(NodeKind::kSend, message(1, 7, 100));
  ranks[0].communicates(NodeKind::kSend, message(1, 8, 50));
  ranks[1].communicates(NodeKind::kReceive, message(0, 8, 50), {ranks[1].kernel(1000)});
  ranks[1].communicates(NodeKind::kReceive, message(0, 7, 100));
  EXPECT_THAT(replay(run_of(ranks), one_link(0)).rank_end, ElementsAre(1050U, 1050U));
}

TEST(GraphReplay, RecordedTimesOfTransfersCountFromTheLastRankAndWithoutItsWaits) {
  std::vector<GraphOf> ranks(2);
  ranks[0].collective(1000, {}, ImportedMessage::kWorld, 340);  // 300 of it are waits
  ranks[1].collective(1000, {ranks[1].kernel(300)}, ImportedMessage::kWorld, 40);
  GraphCosts costs = one_link(0);
  costs.recorded_transfers = true;
  EXPECT_EQ(replay(run_of(ranks), costs).end, 340U);
  costs.transfer_scale = 0.5;
  EXPECT_EQ(replay(run_of(ranks), costs).end, 320U);
  costs.recorded_transfers = false;
  EXPECT_EQ(replay(run_of(ranks), costs).end, 800U) << "half of the bytes";
}

TEST(GraphReplay, RanksWithoutAGraphComeWithTheOthers) {
  std::vector<GraphOf> ranks(1);
  ranks[0].collective(1000, {ranks[0].kernel(10)});
  ImportedRun run = run_of(ranks);
  run.graph_of_rank = {ImportedRun::kAbsent, 0, ImportedRun::kAbsent};
  const GraphReplayResult result = replay(run, one_link(0));
  EXPECT_THAT(result.rank_end, ElementsAre(0U, 1010U, 0U));
}

TEST(GraphReplay, RanksThatShareAGraphAreReplayedEachOnItsOwn) {
  std::vector<GraphOf> ranks(1);
  ranks[0].collective(1000, {ranks[0].kernel(10)});
  ImportedRun run = run_of(ranks);
  run.graph_of_rank = {0, 0, 0};
  const GraphReplayResult result = replay(run, one_link(0));
  EXPECT_THAT(result.rank_end, ElementsAre(1010U, 1010U, 1010U));
  EXPECT_EQ(result.nodes, 6U);
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
  replay(run_of({rank}), {}, {&timeline});
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
    replay(run_of(ranks), one_link(0));
    FAIL() << "nobody comes";
  } catch (const DeadlockError& error) {
    EXPECT_THAT(error.what(), HasSubstr("node 100 'n0' of rank 0, all_reduce, waits for rank 1"));
  }
}

// Bounds and conservation on random graphs: no run is shorter than its longest chain or its
// busiest stream, nor longer than all of its work one after the other.
TEST(GraphReplay, TheEndLiesBetweenTheLongestChainAndAllWorkInARow) {
  std::uint64_t state = 1;
  const auto draw = [&](std::uint64_t below) {
    state = state * 6364136223846793005ULL + 1442695040888963407ULL;
    return (state >> 33U) % below;
  };
  for (int trial = 0; trial < 50; ++trial) {
    GraphOf rank;
    std::vector<Picoseconds> chain;
    Picoseconds sum = 0, longest = 0, busiest[2] = {};
    for (NodeId node = 0; node < 60; ++node) {
      const Picoseconds time = draw(100);
      const auto stream = static_cast<std::uint16_t>(draw(2));
      std::vector<NodeId> after;
      Picoseconds before = 0;
      for (std::uint64_t i = 0; i < draw(3) && node > 0; ++i) {
        after.push_back(static_cast<NodeId>(draw(node)));
        before = std::max(before, chain[after.back()]);
      }
      rank.kernel(time, after, stream);
      chain.push_back(before + time);
      longest = std::max(longest, chain.back());
      busiest[stream] += time;
      sum += time;
    }
    const Picoseconds end = replay(run_of({rank}), {}).end;
    EXPECT_GE(end, std::max({longest, busiest[0], busiest[1]}));
    EXPECT_LE(end, sum);
  }
}

}  // namespace
}  // namespace orrery::graph_replay_test
