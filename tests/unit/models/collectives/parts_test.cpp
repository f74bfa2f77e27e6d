// SPDX-License-Identifier: Apache-2.0
// all_to_all with parts of different sizes.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "models/collectives/limit.h"
#include "models/collectives/schedule.h"
#include "tests/unit/models/transfers/flow_checks.h"
#include "tests/unit/models/transfers/test_systems.h"

namespace orrery::parts_test {
namespace {

using namespace orrery::fixtures;

/// Parts that are all different, in megabytes: 10 i + j, some of them nothing.
std::vector<Bytes> parts_of(int n) {
  std::vector<Bytes> parts;
  for (int from = 0; from < n; ++from) {
    for (int to = 0; to < n; ++to)
      parts.push_back((from + to) % 5 == 4 ? 0_B : 1_MB * (10.0 * from + to));
  }
  return parts;
}

Transfer uneven(const std::vector<int>& group, std::vector<Bytes> parts) {
  Transfer result = transfer(TransferKind::kAllToAll, 1_GB, {group});
  result.pair_bytes = std::move(parts);
  return result;
}

TEST(UnevenAllToAll, EveryPartGoesToItsReceiverOnce) {
  const std::vector<Bytes> parts = parts_of(8);
  for (const char* name : {"direct", "pairwise"}) {
    const FlowModel network(dgx_h100(), 2, name);
    // In any order of ranks: parts are those of members.
    const std::vector<int> group = {3, 0, 9, 8, 1, 15, 2, 11};
    const Transfer sent = uneven(group, parts);
    const Collective collective = network.collective(sent, sent.groups[0]);
    const auto& algorithm = *AlgorithmRegistry::at("collective", name);
    ASSERT_TRUE(algorithm.serves(collective)) << name;
    EXPECT_FALSE(verify_semantics(collective, algorithm.schedule(collective)).has_value()) << name;
    RecordingSink sink;
    algorithm.run(collective, sink);
    std::vector<double> left;
    left.reserve(parts.size());
    for (const Bytes part : parts) left.push_back(part.base());
    for (const RecordedFlow& flow : sink.flows) {
      const auto member = [&](int rank) {
        return static_cast<std::size_t>(std::find(group.begin(), group.end(), rank) -
                                        group.begin());
      };
      left[member(flow.source) * 8 + member(flow.destination)] -= flow.bytes;
    }
    for (std::size_t i = 0; i < left.size(); ++i)
      EXPECT_EQ(left[i], i % 9 == 0 ? parts[i].base() : 0) << name << " part " << i;
  }
}

TEST(UnevenAllToAll, TheHeaviestLinkIsThePrice) {
  // Rank 2 receives 3 x 30 MB, everyone else sends and receives less: 90 MB / 450 GB/s = 200 us.
  std::vector<Bytes> parts(16, 1_MB);
  for (const std::size_t from : {0U, 1U, 3U}) parts[from * 4 + 2] = 30_MB;
  const FlowModel network(dgx_h100(), 1, "direct");
  const auto priced = network.price(uneven(range(0, 4), parts));
  EXPECT_NEAR(priced.isolated_time.base(), 200e-6 + kScaleUpLatency.base(), 1e-12);
  EXPECT_EQ(network.topology().bundle_name(*priced.bottleneck),
            "nvswitches->system0/node0/accelerator2");
}

TEST(UnevenAllToAll, BytesAreConservedOnThePortsOfRanks) {
  const std::vector<Bytes> parts = parts_of(8);
  const FlowModel network(dgx_h100(), 1);
  const auto loads = dense_loads(network, network.cost(uneven(range(0, 8), parts)));
  for (std::size_t rank = 0; rank < 8; ++rank) {
    double sent = 0, received = 0;
    for (std::size_t other = 0; other < 8; ++other) {
      if (other == rank) continue;
      sent += parts[rank * 8 + other].base();
      received += parts[other * 8 + rank].base();
    }
    const std::string name = "system0/node0/accelerator" + std::to_string(rank);
    EXPECT_NEAR(loads[link(network, name + "->nvswitches")], sent, 1e-3);
    EXPECT_NEAR(loads[link(network, "nvswitches->" + name)], received, 1e-3);
  }
}

TEST(UnevenAllToAll, EqualPartsCostWhatAnAllToAllDoes) {
  for (const char* name : {"direct", "pairwise"}) {
    const FlowModel network(dgx_h100(), 2, name);
    const auto even = network.price(transfer(TransferKind::kAllToAll, 160_MB, {range(0, 16)}));
    Transfer parts = uneven(range(0, 16), std::vector<Bytes>(256, 10_MB));
    const auto same = network.price(parts);
    EXPECT_NEAR(same.isolated_time.base(), even.isolated_time.base(), 1e-12) << name;
    EXPECT_EQ(same.scale_out_steps, even.scale_out_steps);
  }
}

TEST(UnevenAllToAll, NothingBeatsTheHeaviestPort) {
  SystemConfig system = dgx_h100();
  system.scale_up.latency.value = Seconds(0);
  system.scale_out.latency.value = Seconds(0);
  for (const int copies : {1, 2}) {
    const FlowModel network(system, copies);
    const int n = 8 * copies;
    const Transfer sent = uneven(range(0, n), parts_of(n));
    const Seconds least = least_time(network.collective(sent, sent.groups[0]), port_rates(system));
    const Seconds time = network.price(sent).isolated_time;
    EXPECT_GE(time.base(), least.base() * (1 - 1e-12));
    if (copies > 1) continue;
    EXPECT_NEAR(time.base(), least.base(), 1e-12);
  }
}

TEST(UnevenAllToAll, AlgorithmsOfEqualPartsDoNotServeIt) {
  const FlowModel network(dgx_h100(), 2);
  const Transfer sent = uneven(range(0, 16), parts_of(16));
  EXPECT_FALSE(AlgorithmRegistry::at("collective", "hierarchical")
                   ->serves(network.collective(sent, sent.groups[0])));
}

}  // namespace
}  // namespace orrery::parts_test
