// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include "models/collectives/expert_reach.h"
#include "models/collectives/schedule.h"
#include "tests/unit/models/transfers/flow_checks.h"

namespace orrery::dispatch_combine_test {
namespace {

using namespace orrery::fixtures;
using namespace orrery::literals;
using Mode = ExpertRouting::Mode;

const CollectiveAlgorithm& algorithm() {
  return *AlgorithmRegistry::at("collective", "dispatch_combine");
}

RankLayout systems_of(int ranks, int systems) {
  return {.dies = 1, .ranks_per_node = ranks, .ranks_per_system = ranks, .systems = systems};
}

RecordingSink flows(TransferKind kind, const ExpertRouting& routing, const std::vector<int>& group,
                    const RankLayout& layout) {
  Collective collective{kind, 8_MB, group, layout};
  collective.routing = &routing;
  RecordingSink sink;
  algorithm().run(collective, sink);
  return sink;
}

std::map<std::pair<int, int>, double> by_pair(const RecordingSink& sink) {
  std::map<std::pair<int, int>, double> bytes;
  for (const RecordedFlow& flow : sink.flows) bytes[{flow.source, flow.destination}] += flow.bytes;
  return bytes;
}

std::vector<ExpertRouting> routings() {
  std::vector<ExpertRouting> all;
  for (const Mode mode : {Mode::kNormal, Mode::kLowLatency}) {
    for (const double skew : {1.0, 1.5}) {
      all.push_back({.experts = 256, .top_k = 8, .mode = mode, .skew = skew});
      all.push_back(
          {.experts = 256, .top_k = 8, .groups = 8, .top_groups = 4, .mode = mode, .skew = skew});
    }
  }
  return all;
}

TEST(DispatchCombine, CombineIsTheDispatchReversed) {
  for (const ExpertRouting& routing : routings()) {
    for (const int systems : {1, 2, 4}) {
      const RankLayout layout = systems_of(8, systems);
      const auto out =
          by_pair(flows(TransferKind::kDispatch, routing, range(0, layout.ranks()), layout));
      const auto back =
          by_pair(flows(TransferKind::kCombine, routing, range(0, layout.ranks()), layout));
      ASSERT_EQ(out.size(), back.size());
      for (const auto& [pair, bytes] : out)
        EXPECT_NEAR(back.at({pair.second, pair.first}), bytes, 1e-6);
    }
  }
}

TEST(DispatchCombine, LowLatencySendsEveryCopyToItsRankAndOnlyOnce) {
  const ExpertRouting routing{.experts = 256, .top_k = 8, .mode = Mode::kLowLatency};
  const RankLayout layout = systems_of(8, 4);
  const RecordingSink sink = flows(TransferKind::kDispatch, routing, range(0, 32), layout);
  for (int rank = 0; rank < 32; ++rank) {
    EXPECT_NEAR(sink.sent(rank), 8e6 * 31 / 32, 1e-3);
    EXPECT_NEAR(sink.received(rank), 8e6 * 31 / 32, 1e-3);
  }
}

TEST(DispatchCombine, HeaviestRankReceivesSkewTimesTheMeanAndAllCopiesArrive) {
  const ExpertRouting routing{.experts = 64, .top_k = 4, .mode = Mode::kLowLatency, .skew = 2};
  const RankLayout layout = systems_of(8, 1);
  const RecordingSink sink = flows(TransferKind::kDispatch, routing, range(0, 8), layout);
  EXPECT_NEAR(sink.received(0), 2 * 8e6 * 7 / 8, 1e-3);
  for (int rank = 1; rank < 8; ++rank) {
    // What a rank keeps, sends and has to send: all its copies.
    const double kept = 8e6 / 8 * (8.0 - 2) / 7;
    EXPECT_NEAR(sink.sent(rank) + kept, 8e6, 1e-3);
  }
}

TEST(DispatchCombine, NormalSendsATokenOnceToEachRankOfASystem) {
  const ExpertRouting routing{.experts = 256, .top_k = 8};
  const RankLayout layout = systems_of(8, 1);
  const RecordingSink sink = flows(TransferKind::kDispatch, routing, range(0, 8), layout);
  const double needed = reach(routing, {0, 32, 256});
  for (int rank = 0; rank < 8; ++rank)
    EXPECT_NEAR(sink.received(rank), 1e6 * 7 * needed, 1e-3);  // 1 MB is one copy of all tokens
}

TEST(DispatchCombine, NormalCrossesToEachSystemOnceAndOnlyAlongTheRail) {
  for (const ExpertRouting& routing : routings()) {
    if (routing.mode != Mode::kNormal || routing.skew > 1) continue;
    const RankLayout layout = systems_of(8, 4);
    const RecordingSink sink = flows(TransferKind::kDispatch, routing, range(0, 32), layout);
    const double needed = reach(routing, {0, 64, 256});
    double crossing = 0;
    for (const auto& [pair, bytes] : by_pair(sink)) {
      if (pair.first / 8 == pair.second / 8) continue;
      EXPECT_EQ(pair.first % 8, pair.second % 8);
      crossing += bytes;
    }
    EXPECT_NEAR(crossing, 32 * 1e6 * 3 * needed, 1e-2);
  }
}

TEST(DispatchCombine, NormalBringsEveryRankWhatItNeedsWhereverItEnters) {
  // Bytes into a rank over NVLink: from 32 tokens' owners, less those that enter at the rank itself
  // (its own tokens and those of its rail).
  const ExpertRouting routing{.experts = 256, .top_k = 8, .groups = 8, .top_groups = 4};
  const RankLayout layout = systems_of(8, 4);
  const RecordingSink sink = flows(TransferKind::kDispatch, routing, range(0, 32), layout);
  const double needed = reach(routing, {0, 8, 256});
  std::vector<double> inside(32);
  for (const auto& [pair, bytes] : by_pair(sink)) {
    if (pair.first / 8 == pair.second / 8) inside[static_cast<std::size_t>(pair.second)] += bytes;
  }
  for (const double bytes : inside) EXPECT_NEAR(bytes, 1e6 * (32 - 4) * needed, 1e-3);
}

TEST(DispatchCombine, UnevenSystemsLoseNoTokens) {
  const ExpertRouting routing{.experts = 64, .top_k = 4};
  const RankLayout layout = systems_of(8, 2);
  const std::vector<int> group = {0, 1, 2, 8, 9};
  const RecordingSink sink = flows(TransferKind::kDispatch, routing, group, layout);
  // 5 ranks hold 13 experts each. Rank 0 hands on its own tokens and those of ranks 8.
  const double rank = reach(routing, {0, 13, 65});
  const auto bytes = by_pair(sink);
  EXPECT_NEAR(bytes.at({0, 1}), 2e6 * rank * 2, 1e-3);
  EXPECT_NEAR(bytes.at({2, 1}), 2e6 * rank, 1e-3);  // nobody of the other system enters at rank 2
  EXPECT_NEAR(bytes.at({8, 9}), 2e6 * rank * 3, 1e-3);  // its own, of ranks 0 and 2
  EXPECT_NEAR(bytes.at({2, 8}), 2e6 * reach(routing, {39, 65, 65}), 1e-3);
}

TEST(DispatchCombine, SixteenThousandRanksTakeFlowsInProportion) {
  struct CountingSink final : FlowSink {
    void add(int, int, Bytes) override { ++calls; }
    void exchange(std::span<const int> group, Bytes) override { calls += group.size(); }
    void reduce(std::span<const int>, Bytes) override {}
    void multicast(std::span<const int>, Bytes) override {}
    std::size_t calls = 0;
  } sink;
  const RankLayout layout = systems_of(8, 2048);
  const std::vector<int> group = range(0, layout.ranks());
  const ExpertRouting routing{.experts = 256, .top_k = 8, .skew = 1.2};
  Collective collective{TransferKind::kDispatch, 8_MB, group, layout};
  collective.routing = &routing;
  algorithm().run(collective, sink);
  EXPECT_LE(sink.calls, 4 * group.size());
}

TEST(DispatchCombine, ScheduleMovesEveryPartInTheStepsThatAreCounted) {
  for (const ExpertRouting& routing : routings()) {
    for (const TransferKind kind : {TransferKind::kDispatch, TransferKind::kCombine}) {
      for (const int systems : {1, 3}) {
        const RankLayout layout = systems_of(4, systems);
        const std::vector<int> group = range(0, layout.ranks());
        Collective collective{kind, 8_MB, group, layout};
        collective.routing = &routing;
        const Schedule schedule = algorithm().schedule(collective);
        const auto fault = verify_semantics(collective, schedule);
        EXPECT_FALSE(fault) << fault->text;
        RecordingSink sink;
        EXPECT_EQ(algorithm().run(collective, sink), dependent_steps(collective, schedule));
      }
    }
  }
}

}  // namespace
}  // namespace orrery::dispatch_combine_test
