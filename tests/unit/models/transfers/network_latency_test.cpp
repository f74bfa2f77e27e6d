// SPDX-License-Identifier: Apache-2.0
// What the network between systems, and the library that is told of it, make of protocols.
#include <gtest/gtest.h>

#include "models/transfers/flow_model.h"
#include "models/transfers/protocols.h"
#include "tests/unit/models/transfers/flow_checks.h"
#include "tests/unit/models/transfers/test_systems.h"

namespace orrery::network_latency_test {
namespace {

using namespace orrery::fixtures;

Transfer all_reduce(Bytes bytes, int ranks) {
  return transfer(TransferKind::kAllReduce, bytes, {range(0, ranks)});
}

SystemConfig with_latency(SystemConfig system, Seconds latency) {
  system.scale_out.latency.value = latency;
  return system;
}

double microseconds(Seconds time) { return time.base() * 1e6; }

TEST(NetworkLatency, ASlowerNetworkComesToEachStepBetweenSystems) {
  const SystemConfig nccl = with_nccl(dgx_h100());
  const Seconds known = nccl.scale_up.protocols->net_latency.value;
  for (const char* algorithm : {"ring", "tree", "nvls_tree"}) {
    const FlowModel as_known(with_latency(nccl, known), 2, algorithm);
    const FlowModel slower(with_latency(nccl, known + 20_us), 2, algorithm);
    const PricedTransfer before = as_known.price(all_reduce(1_KiB, 16));
    const PricedTransfer after = slower.price(all_reduce(1_KiB, 16));
    EXPECT_GT(after.scale_out_steps, 0) << algorithm;
    EXPECT_NEAR(microseconds(after.isolated_time - before.isolated_time),
                20.0 * after.scale_out_steps, 1e-3)
        << algorithm;
  }
}

TEST(NetworkLatency, AFasterNetworkThanTheMeasuredOneSavesNothing) {
  const SystemConfig nccl = with_nccl(dgx_h100());
  const auto time = [&](Seconds latency) {
    return FlowModel(with_latency(nccl, latency), 2).isolated_time(all_reduce(1_KiB, 16));
  };
  EXPECT_EQ(time(1_us).base(), time(nccl.scale_up.protocols->net_latency.value).base());
}

TEST(NetworkLatency, MessagesBetweenSystemsWaitForTheNetworkOnce) {
  const SystemConfig nccl = with_nccl(dgx_h100());
  Transfer message = transfer(TransferKind::kSendReceive, 1_KiB, {{0, 8}});
  const auto time = [&](Seconds latency) {
    return microseconds(FlowModel(with_latency(nccl, latency), 2).isolated_time(message));
  };
  EXPECT_NEAR(time(40_us) - time(30_us), 10, 1e-3);
}

TEST(NetworkLatency, InsideASystemItIsNothing) {
  const SystemConfig nccl = with_nccl(dgx_h100());
  const auto time = [&](Seconds latency) {
    return FlowModel(with_latency(nccl, latency), 1).isolated_time(all_reduce(1_KiB, 8));
  };
  EXPECT_EQ(time(100_us).base(), time(3_us).base());
}

TEST(NetworkLatency, TwoSystemsReduceLargeBuffersInSwitchesAndMoreByRings) {
  SystemConfig nccl = with_nccl(dgx_h100());
  nccl.scale_up.efficiency.value = 0.824;  // NCCL: 20.6 of 25 GB/s a link
  EXPECT_EQ(FlowModel(nccl, 2).price(all_reduce(2_GiB, 16)).algorithm, "nvls_tree");
  EXPECT_EQ(FlowModel(nccl, 4).price(all_reduce(4_GiB, 32)).algorithm, "ring");
  SystemConfig ampere = nccl;
  ampere.scale_up.protocols->in_switch_ranks = 0;
  EXPECT_EQ(FlowModel(ampere, 2).price(all_reduce(2_GiB, 16)).algorithm, "ring");
}

TEST(NetworkLatency, ALibraryThatIsToldOfALatencyTakesFewerStepsBetweenSystems) {
  SystemConfig told = with_nccl(dgx_h100());
  told.scale_up.protocols->in_switch_ranks = 0;
  const Transfer large = all_reduce(512_MiB, 64);
  const PricedTransfer before = FlowModel(told, 8).price(large);
  told.scale_up.protocols->nominal_net_latency.value = 75_us;
  const PricedTransfer after = FlowModel(told, 8).price(large);
  EXPECT_LT(after.scale_out_steps, before.scale_out_steps);
}

TEST(NetworkLatency, WithoutLlSimpleCarriesRingsAndTrees) {
  SystemConfig simple = with_nccl(dgx_h100());
  simple.scale_up.protocols->ll = simple.scale_up.protocols->ll128 = false;
  const FlowModel network(simple, 2);
  for (const Bytes bytes : {1_KiB, 1_MiB, 64_MiB})
    EXPECT_EQ(network.price(all_reduce(bytes, 16)).protocol, "simple");
}

SystemConfig with_rccl() {
  SystemConfig system = mi300x();
  ProtocolsConfig& protocols = system.scale_up.protocols.emplace();
  protocols.topologies = {"mesh"};
  protocols.ll128 = false;
  protocols.nominal_links = NominalLinks::kXgmi3;
  protocols.all_pairs_ranks = 8;
  protocols.all_pairs_ll.value = 512_KiB;
  protocols.all_pairs_simple.value = 16_MiB;
  protocols.launch.value = 12_us;
  protocols.ll_hop.value = 1_us;
  return system;
}

TEST(NetworkLatency, EightGoFromEachToEachAsFarAsTheLibraryHasThat) {
  const FlowModel network(with_rccl(), 1);
  const auto carried = [&](Bytes bytes, int ranks) {
    const PricedTransfer priced = network.price(all_reduce(bytes, ranks));
    return priced.algorithm + " " + priced.protocol;
  };
  EXPECT_EQ(carried(1_KiB, 8), "direct ll");
  EXPECT_EQ(carried(1_MiB, 8), "direct simple");
  EXPECT_EQ(carried(64_MiB, 8), "ring simple");
  EXPECT_EQ(carried(1_KiB, 4), "ring ll");
}

TEST(NetworkLatency, FromEachToEachIsALaunchAndTwoHops) {
  const PricedTransfer priced = FlowModel(with_rccl(), 1).price(all_reduce(64_B, 8));
  EXPECT_NEAR(microseconds(priced.isolated_time), 14, 0.05);
}

}  // namespace
}  // namespace orrery::network_latency_test
