// SPDX-License-Identifier: Apache-2.0
// Algorithms tell their flows in time linear in ranks and channels, so that 100,000 ranks can be
// priced.
#include <gtest/gtest.h>

#include <map>
#include <string>

#include "tests/unit/models/transfers/flow_checks.h"

namespace orrery::scale_test {
namespace {

using namespace orrery::fixtures;
using namespace orrery::literals;

class CountingSink final : public FlowSink {
 public:
  void add(int, int, Bytes) override { ++flows; }
  void exchange(std::span<const int> group, Bytes) override { members += group.size(); }
  void reduce(std::span<const int> group, Bytes) override { members += group.size(); }
  void multicast(std::span<const int> group, Bytes) override { members += group.size(); }

  std::size_t flows = 0;    ///< single ones
  std::size_t members = 0;  ///< members of groups, each group one call
};

TEST(Scale, RanksTimesChannelsFlowsAreTold) {
  constexpr std::size_t kRanks = 98304;
  const RankLayout layout{
      .ranks_per_node = 8, .ranks_per_system = 8, .systems = static_cast<int>(kRanks / 8)};
  const std::vector<int> group = range(0, kRanks);
  const std::map<std::string, std::size_t> most_per_rank = {
      {"ring", 8}, {"tree", 18}, {"hierarchical", 2}, {"sharp", 4}, {"nvls_tree", 8}};
  for (const auto& [name, most] : most_per_rank) {
    Collective collective{TransferKind::kAllReduce, 1_GB, group, layout};
    collective.switches_reduce = collective.systems_reduce = true;
    CountingSink sink;
    AlgorithmRegistry::at("collective", name)->run(collective, sink);
    EXPECT_LE(sink.flows + sink.members, most * kRanks) << name;
    EXPECT_GE(sink.flows + sink.members, kRanks) << name;
  }
}

TEST(Scale, AnAllToAllIsAnExchangeOfTheGroup) {
  constexpr int kRanks = 16384;
  const RankLayout layout{.ranks_per_node = 8, .ranks_per_system = 8, .systems = kRanks / 8};
  const std::vector<int> group = range(0, kRanks);
  for (const char* name : {"direct", "pairwise", "hierarchical"}) {
    CountingSink sink;
    AlgorithmRegistry::at("collective", name)
        ->run({TransferKind::kAllToAll, 1_GB, group, layout}, sink);
    EXPECT_EQ(sink.flows, 0U) << name;
    EXPECT_LE(sink.members, 2U * kRanks) << name;
  }
}

}  // namespace
}  // namespace orrery::scale_test
