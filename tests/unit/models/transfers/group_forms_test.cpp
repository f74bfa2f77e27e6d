// SPDX-License-Identifier: Apache-2.0
#include "models/transfers/group_forms.h"

#include <gtest/gtest.h>

#include "models/transfers/flow_record.h"
#include "models/transfers/load_sink.h"
#include "tests/unit/models/transfers/flow_checks.h"
#include "tests/unit/models/transfers/test_systems.h"

namespace orrery::group_forms_test {
namespace {

using namespace orrery::fixtures;

constexpr RankLayout kNodesOfEight{.ranks_per_node = 8, .ranks_per_system = 8, .systems = 100'000};

Transfer groups_of(int ranks, int groups) {
  std::vector<std::vector<int>> all;
  for (int i = 0; i < groups; ++i) all.push_back(range(i * ranks, ranks));
  return transfer(TransferKind::kAllReduce, 64_MB, all);
}

// What is worked out for each form does not grow with the machine.
TEST(GroupForms, OneForEachPlaceInASystemHoweverManySystemsThereAre) {
  for (const int nodes : {10, 100'000}) {
    EXPECT_EQ(GroupForms(groups_of(8, nodes), kNodesOfEight, true).forms().size(), 1U);
    EXPECT_EQ(GroupForms(groups_of(2, 4 * nodes), kNodesOfEight, true).forms().size(), 4U);
  }
}

TEST(GroupForms, AnImageIsBehindTheFirstOfItsForm) {
  const GroupForms groups(groups_of(4, 6), kNodesOfEight, true);
  ASSERT_EQ(groups.forms().size(), 2U);
  EXPECT_EQ(groups.forms()[1].first, 1U);
  EXPECT_EQ(groups.forms()[1].groups, 3U);
  EXPECT_EQ(groups.images()[5].form, 1U);
  EXPECT_EQ(groups.images()[5].behind, 16);
}

TEST(GroupForms, OrderSizeAndSystemsTellThemApart) {
  const auto forms = [](std::vector<std::vector<int>> groups, bool alike = true) {
    return GroupForms(transfer(TransferKind::kBroadcast, 1_MB, std::move(groups)), kNodesOfEight,
                      alike)
        .forms()
        .size();
  };
  EXPECT_EQ(forms({{0, 1}, {8, 9}}), 1U);
  EXPECT_EQ(forms({{0, 1}, {9, 8}}), 2U);
  EXPECT_EQ(forms({{0, 1}, {8, 9, 10}}), 2U);
  EXPECT_EQ(forms({{0, 8}, {16, 24}}), 2U);
  EXPECT_EQ(forms({{0, 1}, {8, 9}}, false), 2U);
}

TEST(GroupForms, ASampleIsOneSystemOfEachKind) {
  const auto sample = [](std::vector<std::vector<int>> groups) {
    const Transfer all = transfer(TransferKind::kBroadcast, 1_MB, std::move(groups));
    return GroupForms(all, kNodesOfEight, true).sample(all, kNodesOfEight);
  };
  using Groups = std::vector<std::size_t>;
  EXPECT_EQ(sample({{0, 1}, {2, 3}, {8, 9}, {10, 11}}), Groups({0, 1}));
  // What lies side by side in a system shares its links: the second of these has more.
  EXPECT_EQ(sample({{0, 1}, {8, 9}, {16, 17}, {10, 11}}), Groups({0, 1, 3}));
  EXPECT_EQ(sample({{0, 1}, {7, 8}, {16, 17}}), Groups());
}

// 98,304 ranks have 12,288 systems of one kind: what is chosen for one of them holds for all.
TEST(FlowModel, ManySystemsChooseWhatTheirSlowestKindWouldChoose) {
  for (const SystemConfig& system : {dgx_h100(), dgx_1(), dgx_2()}) {
    const FlowModel network(system, 6);
    const int ranks = system.ranks();
    for (const double bytes : {64.0, 1e6, 1e9}) {
      std::vector<std::vector<int>> pairs, busy;
      for (int copy = 0; copy < 6; ++copy) pairs.push_back(range(copy * ranks, 2));
      busy = {pairs[3], range(3 * ranks + 2, 2), range(3 * ranks + 4, 2)};
      std::vector<std::vector<int>> all = pairs;
      all.insert(all.end(), busy.begin() + 1, busy.end());
      const PricedTransfer many =
          network.price(transfer(TransferKind::kAllReduce, Bytes(bytes), all));
      const PricedTransfer one =
          network.price(transfer(TransferKind::kAllReduce, Bytes(bytes), busy));
      EXPECT_EQ(many.algorithm, one.algorithm);
      EXPECT_EQ(many.protocol, one.protocol);
      EXPECT_EQ(many.isolated_time, one.isolated_time);
      EXPECT_EQ(many.memory, one.memory);
    }
  }
}

TEST(LoadSink, IsAsNewAfterClear) {
  Topology topology;
  const SystemConfig system = dgx_h100();
  const RankLayout layout = rank_layout(system, 2);
  const auto fabric = build_fabric(system, layout, topology);
  LoadSink used(*fabric, topology.bundles().size(), layout.ranks());
  LoadSink fresh(*fabric, topology.bundles().size(), layout.ranks());
  used.add(0, 9, 5_MB);
  used.exchange(range(0, 16), 3_MB);
  used.clear();
  const auto loads = [](const LoadSink& sink) {
    std::vector<std::pair<BundleId, double>> all;
    sink.each_load([&](BundleId bundle, double bytes) { all.emplace_back(bundle, bytes); });
    return all;
  };
  EXPECT_TRUE(loads(used).empty());
  for (LoadSink* sink : {&used, &fresh}) sink->add(3, 4, 1_MB);
  EXPECT_EQ(loads(used), loads(fresh));
  EXPECT_EQ(loads(used).size(), 2U);
  EXPECT_EQ(used.most_memory(), fresh.most_memory());
}

TEST(FlowRecord, RepeatsWhatItPassedOnForRanksFurtherBehind) {
  RecordingSink sink;
  FlowRecord record(sink);
  record.add(0, 1, 5_B);
  record.exchange(range(2, 2), 7_B);
  for (const int behind : {8, 24}) {
    sink.flows.clear();
    record.repeat(behind);
    ASSERT_EQ(sink.flows.size(), 3U);
    EXPECT_EQ(sink.flows[0].source, behind);
    EXPECT_EQ(sink.flows[0].destination, behind + 1);
    EXPECT_EQ(sink.flows[0].bytes, 5);
    EXPECT_EQ(sink.flows[2].source, behind + 3);
    EXPECT_EQ(sink.flows[2].destination, behind + 2);
    EXPECT_EQ(sink.flows[2].bytes, 7);
  }
}

// Groups of different systems share no link: together they load what each loads alone.
TEST(FlowModel, ImagesOfAFormLoadWhatTheyLoadAlone) {
  for (const SystemConfig& system : {dgx_h100(), dgx_1(), dgx_2()}) {
    const int ranks = system.ranks();
    const FlowModel network(system, 4);
    for (const TransferKind kind : {TransferKind::kAllReduce, TransferKind::kAllToAll}) {
      std::vector<double> alone(network.capacities().size());
      std::vector<std::vector<int>> groups;
      PricedTransfer priced;
      for (int copy = 0; copy < 4; ++copy) {
        groups.push_back(range(copy * ranks, 8));
        priced = network.price(transfer(kind, 1_GB, {groups.back()}));
        for (const LinkLoad& load : priced.cost.loads) alone[load.link] += load.bytes;
      }
      const PricedTransfer together = network.price(transfer(kind, 1_GB, groups));
      EXPECT_EQ(dense_loads(network, together.cost), alone);
      EXPECT_EQ(together.isolated_time, priced.isolated_time);
      EXPECT_EQ(together.algorithm, priced.algorithm);
    }
  }
}

}  // namespace
}  // namespace orrery::group_forms_test
