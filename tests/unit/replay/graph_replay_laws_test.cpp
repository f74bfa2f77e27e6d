// SPDX-License-Identifier: Apache-2.0
// What every replay of imported graphs keeps to, on random ones.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "sim/replay/graph_replay.h"
#include "tests/unit/replay/graph_builder.h"

namespace orrery::graph_replay_laws_test {
namespace {

using test::GraphOf;
using test::OnOneLink;

constexpr int kTrials = 60;
constexpr std::uint64_t kNodes = 60;
constexpr Picoseconds kLatency = 7;

/// Graphs of a few ranks which agree on their collectives, and what is known about them.
struct Drawn {
  ImportedRun run;
  double bytes = 0;                            ///< bytes of all transfers
  Picoseconds longest = 0;                     ///< chain of dependencies within a rank
  std::vector<std::vector<Picoseconds>> busy;  ///< work of each serial stream, by rank
  Picoseconds sum = 0;                         ///< time of all nodes
};

class Draws {
 public:
  explicit Draws(std::uint64_t seed) : state_(seed) {}
  std::uint64_t below(std::uint64_t end) {
    state_ = state_ * 6364136223846793005ULL + 1442695040888963407ULL;
    return (state_ >> 33U) % end;
  }

 private:
  std::uint64_t state_;
};

/// @param in_order each node of a stream waits for the one before it, so that no other order than
/// that of the file is possible
Drawn draw(std::uint64_t seed, int ranks, bool transfers, bool in_order) {
  Draws draws(seed);
  std::vector<GraphOf> graphs(static_cast<std::size_t>(ranks));
  Drawn drawn;
  drawn.busy.assign(graphs.size(), std::vector<Picoseconds>(2));
  std::vector<std::vector<Picoseconds>> chain(graphs.size());
  std::vector<std::array<int, 3>> last(graphs.size(), {-1, -1, -1});
  for (NodeId node = 0; node < kNodes; ++node) {
    const bool meets = transfers && draws.below(4) == 0;
    const double bytes = static_cast<double>(1 + draws.below(4) * 50);
    const Picoseconds carried = kLatency + static_cast<Picoseconds>(bytes);
    if (meets) {
      drawn.bytes += bytes;
      drawn.sum += carried;
    }
    for (std::size_t r = 0; r < graphs.size(); ++r) {
      std::vector<NodeId> after;
      for (std::uint64_t i = draws.below(3); i > 0 && node > 0; --i)
        after.push_back(static_cast<NodeId>(draws.below(node)));
      const auto stream = static_cast<std::uint16_t>(meets ? test::kLoose : draws.below(2));
      if (in_order && last[r][stream] >= 0) after.push_back(static_cast<NodeId>(last[r][stream]));
      last[r][stream] = static_cast<int>(node);
      std::sort(after.begin(), after.end());
      after.erase(std::unique(after.begin(), after.end()), after.end());
      Picoseconds before = 0;
      for (const NodeId earlier : after) before = std::max(before, chain[r][earlier]);
      const Picoseconds time = meets ? carried : static_cast<Picoseconds>(draws.below(100));
      chain[r].push_back(before + time);
      drawn.longest = std::max(drawn.longest, before + time);
      if (meets) {
        graphs[r].collective(bytes, after);
        continue;
      }
      graphs[r].kernel(time, after, stream);
      drawn.busy[r][stream] += time;
      drawn.sum += time;
    }
  }
  drawn.run = test::run_of(std::move(graphs));
  return drawn;
}

Picoseconds sum_of(const TimeBreakdown& time) {
  return time.compute + time.contention + time.exposed_communication + time.bubble +
         time.optimizer + time.host + time.idle;
}

// Collectives of a rank that none of its nodes keeps in order meet in the order in which the rank
// comes to them, so ranks that come in another order would differ: here they are in order.
TEST(GraphReplayLaws, TheEndLiesBetweenTheLongestChainOrStreamAndAllWorkInARow) {
  for (int trial = 0; trial < kTrials; ++trial) {
    const bool transfers = trial % 2 == 1;
    const Drawn drawn =
        draw(static_cast<std::uint64_t>(trial), transfers ? 3 : 1, transfers, transfers);
    const Picoseconds end = test::replay_on_one_link(drawn.run, kLatency).end;
    EXPECT_GE(end, drawn.longest) << trial;
    for (const std::vector<Picoseconds>& rank : drawn.busy)
      for (const Picoseconds stream : rank) EXPECT_GE(end, stream) << trial;
    EXPECT_LE(end, drawn.sum) << trial;
  }
}

TEST(GraphReplayLaws, LinksCarryTheBytesOfAllTransfers) {
  for (int trial = 0; trial < kTrials; ++trial) {
    const Drawn drawn = draw(static_cast<std::uint64_t>(trial), 3, true, true);
    const GraphReplayResult result = test::replay_on_one_link(drawn.run, kLatency);
    EXPECT_DOUBLE_EQ(result.link_bytes[0], drawn.bytes) << trial;
    EXPECT_NEAR(result.link_busy_s[0], drawn.bytes * 1e-12, 1e-18) << trial;
    EXPECT_LE(result.link_busy_s[0], to_seconds(result.end).base()) << trial;
  }
}

TEST(GraphReplayLaws, PartsOfEveryRankAndTheLongestChainAddUpToTheEnd) {
  for (int trial = 0; trial < kTrials; ++trial) {
    const Drawn drawn = draw(static_cast<std::uint64_t>(trial), 3, true, true);
    OnOneLink prices(drawn.run, kLatency);
    test::share_devices(drawn.run, prices);
    test::SlowedBy slowed(1 + 0.1 * (trial % 10));
    Picoseconds chain = 0;
    GraphReplayOptions options;
    options.slowdowns = &slowed;
    options.chain = [&](std::uint32_t, NodeId, Picoseconds time) { chain += time; };
    const GraphReplayResult result = replay(drawn.run, prices.nodes, prices.costs, options);
    EXPECT_EQ(chain, result.end) << trial;
    for (const RoleResult& rank : result.roles) EXPECT_EQ(sum_of(rank.breakdown), result.end);
  }
}

// Where the order of each stream is given. Where it is not, a kernel that takes longer may let a
// better one go first (Graham's anomalies).
TEST(GraphReplayLaws, ContentionMakesNoReplayFaster) {
  for (int trial = 0; trial < kTrials; ++trial) {
    const Drawn drawn = draw(static_cast<std::uint64_t>(trial), 3, true, true);
    OnOneLink prices(drawn.run, kLatency);
    test::share_devices(drawn.run, prices);
    Picoseconds before = test::replay_on_one_link(drawn.run, kLatency).end;
    for (const double factor : {1.0, 1.3, 2.0, 8.0}) {
      test::SlowedBy slowed(factor);
      GraphReplayOptions options;
      options.slowdowns = &slowed;
      const Picoseconds end = replay(drawn.run, prices.nodes, prices.costs, options).end;
      if (factor == 1) {
        EXPECT_EQ(end, before) << trial;
      }
      // Ends of kernels are rounded one by one.
      EXPECT_GE(end + kNodes, before) << trial << " at " << factor;
      before = end;
    }
  }
}

TEST(GraphReplayLaws, AChainTakesTheSumOfItsNodes) {
  for (int trial = 0; trial < kTrials; ++trial) {
    Draws draws(static_cast<std::uint64_t>(trial));
    GraphOf chain;
    Picoseconds sum = 0;
    for (NodeId node = 0; node < kNodes; ++node) {
      const std::vector<NodeId> after =
          node > 0 ? std::vector<NodeId>{node - 1} : std::vector<NodeId>{};
      const auto time = static_cast<Picoseconds>(draws.below(100));
      if (draws.below(3) == 0) {
        chain.collective(static_cast<double>(time), after);
        sum += time > 0 ? kLatency + time : 0;
      } else {
        chain.kernel(time, after, static_cast<std::uint16_t>(draws.below(2)));
        sum += time;
      }
    }
    ImportedRun run = test::run_of({chain});
    run.graph_of_rank = {0, 0};
    EXPECT_EQ(test::replay_on_one_link(run, kLatency).end, sum) << trial;
  }
}

}  // namespace
}  // namespace orrery::graph_replay_laws_test
