// SPDX-License-Identifier: Apache-2.0
// What every algorithm computes, for every collective that it serves: proved by a symbolic run of
// its schedule, whose bytes and steps must be those that the algorithm reports.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <utility>
#include <vector>

#include "models/collectives/schedule.h"
#include "models/topologies/dimension_config.h"
#include "tests/unit/models/transfers/flow_checks.h"
#include "tests/unit/models/transfers/test_systems.h"

namespace orrery::semantics_test {
namespace {

using namespace orrery::fixtures;
using namespace orrery::literals;
using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr TransferKind kKinds[] = {
    TransferKind::kAllReduce,   TransferKind::kAllGather, TransferKind::kReduceScatter,
    TransferKind::kAllToAll,    TransferKind::kBroadcast, TransferKind::kReduce,
    TransferKind::kGather,      TransferKind::kScatter,   TransferKind::kBarrier,
    TransferKind::kSendReceive, TransferKind::kDispatch,  TransferKind::kCombine};

/// A machine and a group on it.
struct Place {
  std::string name;
  RankLayout layout;
  std::vector<int> group;
  std::vector<int> torus = {};
  std::vector<RingOrders> rings = {};
  std::vector<const DimensionConfig*> dimensions = {};
};

RankLayout systems_of(int ranks, int systems) {
  return {.dies = 1, .ranks_per_node = ranks, .ranks_per_system = ranks, .systems = systems};
}

/// Networks of several dimensions, in each all three algorithms.
void add_dimensions(std::vector<Place>& places) {
  using enum LineAlgorithm;
  static const std::vector<std::vector<DimensionConfig>> networks = [] {
    const auto line = [](int size, LineAlgorithm algorithm) {
      return dimension(DimensionShape::kMesh, size, 1_GBps, {}, algorithm);
    };
    return std::vector<std::vector<DimensionConfig>>{
        {line(5, kRing)},
        {line(8, kHalvingDoubling)},
        {line(4, kRing), line(3, kDirect)},
        {line(4, kHalvingDoubling), line(2, kRing)},
        {line(2, kDirect), line(4, kHalvingDoubling), line(2, kRing)},
        {line(3, kRing), line(2, kDirect), line(2, kHalvingDoubling)}};
  }();
  for (const std::vector<DimensionConfig>& network : networks) {
    int n = 1;
    for (const DimensionConfig& dimension : network) n *= dimension.size;
    places.push_back({"dimensions of " + std::to_string(n), systems_of(n, 1), range(0, n)});
    for (const DimensionConfig& dimension : network) places.back().dimensions.push_back(&dimension);
  }
}

std::vector<Place> places() {
  std::vector<Place> places;
  for (int n = 2; n <= 17; ++n)
    places.push_back({"one system of " + std::to_string(n), systems_of(n, 1), range(0, n)});
  for (int systems = 2; systems <= 9; ++systems) {
    places.push_back({"rail of " + std::to_string(systems), systems_of(4, systems), {}});
    for (int s = 0; s < systems; ++s) places.back().group.push_back(4 * s + 1);
  }
  for (const auto& [ranks, systems] :
       {std::pair{2, 2}, {2, 3}, {4, 2}, {3, 3}, {4, 4}, {2, 7}, {8, 2}, {5, 3}}) {
    places.push_back({std::to_string(systems) + " systems of " + std::to_string(ranks),
                      systems_of(ranks, systems), range(0, ranks * systems)});
  }
  const RankLayout servers = systems_of(8, 3);
  places.push_back({"uneven parts", servers, {0, 1, 2, 3, 4, 8, 9, 10}});
  places.push_back({"uneven parts, out of order", servers, {10, 0, 17, 3, 8, 1, 16, 2, 9, 19}});
  places.push_back({"across the systems", servers, {0, 8, 16, 1, 9, 17}});
  places.push_back({"root in the middle", servers, {5, 0, 1, 2, 3, 4, 6, 7, 8, 9}});
  for (const std::vector<int>& sizes :
       std::vector<std::vector<int>>{{4}, {2, 2}, {3, 4}, {4, 4}, {2, 3, 2}, {1, 5}, {2, 2, 4}}) {
    int n = 1;
    for (const int size : sizes) n *= size;
    places.push_back({"torus of " + std::to_string(n), systems_of(n, 1), range(0, n), sizes});
  }
  const RingOrders mesh = {{3, 0, 2, 1, 4}, {4, 1, 2, 0, 3}, {1, 0, 4, 2, 3}};
  places.push_back({"mesh of 5", systems_of(5, 1), range(0, 5), {}, {mesh}});
  places.push_back({"2 meshes of 5", systems_of(5, 2), range(0, 10), {}, {mesh, mesh}});
  places.push_back(
      {"part of 2 meshes", systems_of(5, 2), {7, 3, 0, 1, 2, 4, 5}, {}, {mesh, {{0, 1}}}});
  add_dimensions(places);
  return places;
}

Collective collective_at(const Place& place, TransferKind kind, bool reduces) {
  Collective collective{kind, kind == TransferKind::kBarrier ? 0_B : 840_MB, place.group,
                        place.layout};
  collective.switches_reduce = reduces;
  collective.systems_reduce = reduces;
  collective.torus = place.torus;
  collective.rings = place.rings;
  collective.dimensions = place.dimensions;
  collective.each_dimension = reduces;  // for networks of dimensions: both orders of an all-reduce
  // Each copy straight to its expert is an all-to-all byte for byte.
  static const ExpertRouting routing{
      .experts = 256, .top_k = 8, .mode = ExpertRouting::Mode::kLowLatency};
  collective.routing = &routing;
  return collective;
}

/// Bytes by pair of ranks; -1 stands for switches.
using Bytes2D = std::map<std::pair<int, int>, double>;

Bytes2D bytes_of_schedule(const Collective& collective, const Schedule& schedule) {
  const auto rank = [&](int end) {
    return is_switches(end) ? -1 : collective.group[static_cast<std::size_t>(end)];
  };
  const double chunk = chunk_bytes(collective, schedule.chunks).base();
  Bytes2D bytes;
  for (const Message& message : schedule.messages)
    bytes[{rank(message.from), rank(message.to)}] += chunk * message.chunks.count;
  return bytes;
}

Bytes2D bytes_of_run(const RecordingSink& sink) {
  Bytes2D bytes;
  for (const auto* flows : {&sink.flows, &sink.reduced, &sink.multicasts}) {
    for (const RecordedFlow& flow : *flows) bytes[{flow.source, flow.destination}] += flow.bytes;
  }
  return bytes;
}

/// Calls `visit(algorithm name, algorithm, collective)` for all that is served anywhere.
template <class Visit>
void for_all_served(Visit visit) {
  const std::vector<Place> all = places();
  for (const auto& [name, item] : AlgorithmRegistry::items()) {
    for (const Place& place : all) {
      for (const TransferKind kind : kKinds) {
        if (kind == TransferKind::kSendReceive && place.group.size() != 2) continue;
        for (const bool reduces : {false, true}) {
          const Collective collective = collective_at(place, kind, reduces);
          if (!item.entry->serves(collective)) continue;
          SCOPED_TRACE(name + ", " + to_string(kind) + ", " + place.name);
          visit(name, *item.entry, collective);
        }
      }
    }
  }
}

TEST(Semantics, EveryRankEndsWithExactlyWhatTheCollectivePromises) {
  std::map<std::string, int> proved;
  for_all_served([&](const std::string& name, const CollectiveAlgorithm& algorithm,
                     const Collective& collective) {
    const auto fault = verify_semantics(collective, algorithm.schedule(collective));
    EXPECT_FALSE(fault.has_value()) << fault->text;
    ++proved[name];
  });
  EXPECT_EQ(proved.size(), AlgorithmRegistry::items().size()) << "an algorithm serves nothing here";
}

TEST(Semantics, FlowsCarryTheBytesOfTheSchedule) {
  for_all_served(
      [](const std::string&, const CollectiveAlgorithm& algorithm, const Collective& collective) {
        RecordingSink sink;
        algorithm.run(collective, sink);
        Bytes2D told = bytes_of_run(sink);
        Bytes2D scheduled = bytes_of_schedule(collective, algorithm.schedule(collective));
        for (const auto& [pair, bytes] : scheduled) {
          EXPECT_NEAR(told[pair], bytes, 1e-3) << pair.first << " to " << pair.second;
          told.erase(pair);
        }
        for (const auto& [pair, bytes] : told)
          EXPECT_EQ(bytes, 0) << pair.first << " to " << pair.second << " is not in the schedule";
      });
}

TEST(Semantics, StepsAreTheLongestChainOfTheSchedule) {
  for_all_served(
      [](const std::string&, const CollectiveAlgorithm& algorithm, const Collective& collective) {
        RecordingSink sink;
        const StepCount told = algorithm.run(collective, sink);
        const StepCount found = dependent_steps(collective, algorithm.schedule(collective));
        EXPECT_EQ(told.scale_out, found.scale_out);
        EXPECT_EQ(told.scale_up, found.scale_up);
      });
}

/// Whether a schedule of this kind is right among four ranks of one system.
std::optional<ScheduleFault> fault_among_four(TransferKind kind, const Schedule& schedule,
                                              bool reduces = false) {
  const RankLayout layout = systems_of(4, 1);
  const std::vector<int> group = range(0, 4);
  return verify_semantics({kind, 4_MB, group, layout, reduces}, schedule);
}

Schedule of_four(const char* name, TransferKind kind, bool reduces = false) {
  const RankLayout layout = systems_of(4, 1);
  const std::vector<int> group = range(0, 4);
  return AlgorithmRegistry::at("collective", name)->schedule({kind, 4_MB, group, layout, reduces});
}

TEST(Semantics, ADroppedMessageIsFound) {
  // Whichever it is: every message of these is needed.
  for (const auto& [name, kind] : {std::pair{"ring", TransferKind::kAllReduce},
                                   {"ring", TransferKind::kAllGather},
                                   {"direct", TransferKind::kAllToAll},
                                   {"recursive", TransferKind::kReduceScatter},
                                   {"binomial", TransferKind::kBroadcast},
                                   {"tree", TransferKind::kAllReduce}}) {
    const Schedule whole = of_four(name, kind);
    for (std::size_t i = 0; i < whole.messages.size(); ++i) {
      Schedule broken = whole;
      broken.messages.erase(broken.messages.begin() + static_cast<std::ptrdiff_t>(i));
      const auto fault = fault_among_four(kind, broken);
      ASSERT_TRUE(fault.has_value()) << name << " without message " << i;
      EXPECT_THAT(fault->text, AllOf(HasSubstr("rank "), HasSubstr("chunk "), HasSubstr("step ")));
    }
  }
}

TEST(Semantics, AnotherChunkInAMessageIsFound) {
  const Schedule whole = of_four("ring", TransferKind::kAllReduce);
  for (std::size_t i = 0; i < whole.messages.size(); ++i) {
    Schedule broken = whole;
    int& chunk = broken.messages[i].chunks.first;
    chunk = (chunk + 1) % whole.chunks;
    const auto fault = fault_among_four(TransferKind::kAllReduce, broken);
    ASSERT_TRUE(fault.has_value()) << "message " << i;
    EXPECT_THAT(fault->text, AllOf(HasSubstr("rank "), HasSubstr("chunk "), HasSubstr("step ")));
  }
}

TEST(Semantics, AContributionThatArrivesTwiceIsNamed) {
  Schedule schedule;
  for (const int from : {1, 2, 3}) schedule.reduce(0, from, 0, {});
  schedule.reduce(1, 2, 0, {});
  const auto fault = fault_among_four(TransferKind::kReduce, schedule);
  ASSERT_TRUE(fault.has_value());
  EXPECT_EQ(fault->text,
            "step 1: rank 0 gets the contribution of rank 2 to chunk 0 twice (from rank 2)");
  EXPECT_EQ(fault->message, 3U);
}

TEST(Semantics, NothingIsSentBeforeItIsThere) {
  Schedule schedule;  // what arrives in a step can be sent in the next one, not in the same
  schedule.copy(0, 0, 1, {});
  schedule.copy(0, 1, 2, {});
  schedule.copy(1, 2, 3, {});
  const auto fault = fault_among_four(TransferKind::kBroadcast, schedule);
  ASSERT_TRUE(fault.has_value());
  EXPECT_EQ(fault->text, "step 0: rank 1 sends chunk 0 before it has it");
}

TEST(Semantics, AMissingContributionIsNamed) {
  Schedule schedule;
  schedule.reduce(2, 1, 0, {});
  schedule.reduce(2, 3, 0, {});
  const auto fault = fault_among_four(TransferKind::kReduce, schedule);
  ASSERT_TRUE(fault.has_value());
  EXPECT_EQ(fault->text,
            "rank 0 ends with chunk 0 without the contribution of rank 2 (last written in step 2)");
  EXPECT_FALSE(fault->message.has_value());
}

TEST(Semantics, TwoMessagesDoNotWriteOneChunkAtOnce) {
  Schedule schedule;
  for (const int to : {1, 2, 3}) schedule.copy(0, 0, to, {});
  schedule.copy(1, 1, 3, {});
  schedule.copy(1, 2, 3, {});
  const auto fault = fault_among_four(TransferKind::kBroadcast, schedule);
  ASSERT_TRUE(fault.has_value());
  EXPECT_EQ(fault->text, "step 1: chunk 0 of rank 3 is written twice in one step");
}

TEST(Semantics, SwitchesNeedTheContributionsOfAll) {
  Schedule broken = of_four("nvls", TransferKind::kAllReduce, true);
  ASSERT_TRUE(is_switches(broken.messages[2].to));  // rank 2 sends chunk 0 up
  broken.messages.erase(broken.messages.begin() + 2);
  const auto fault = fault_among_four(TransferKind::kAllReduce, broken, true);
  ASSERT_TRUE(fault.has_value());
  EXPECT_THAT(fault->text, HasSubstr("chunk 0 without the contribution of rank 2"));
}

TEST(Semantics, SwitchesKeepNothing) {
  Schedule schedule;
  for (int member = 0; member < 4; ++member) schedule.reduce(0, member, switches(0), {});
  for (int member = 0; member < 4; ++member) schedule.copy(1, switches(0), member, {});
  const auto fault = fault_among_four(TransferKind::kAllReduce, schedule, true);
  ASSERT_TRUE(fault.has_value());
  EXPECT_EQ(fault->text, "step 1: switches 0 send chunk 0 to rank 0 without having it");
}

TEST(Semantics, OnlySwitchesThatReduceTakePart) {
  const Schedule schedule = of_four("nvls", TransferKind::kAllReduce, true);
  const auto fault = fault_among_four(TransferKind::kAllReduce, schedule);
  ASSERT_TRUE(fault.has_value());
  EXPECT_THAT(fault->text, HasSubstr("step 0: the group has no member -1"));
}

TEST(Semantics, ChunksAreSharedOutEqually) {
  const auto fault = fault_among_four(TransferKind::kAllGather, Schedule{.chunks = 6});
  ASSERT_TRUE(fault.has_value());
  EXPECT_THAT(fault->text, HasSubstr("needs a multiple of 4"));
}

}  // namespace
}  // namespace orrery::semantics_test
