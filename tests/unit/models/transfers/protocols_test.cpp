// SPDX-License-Identifier: Apache-2.0
#include "models/transfers/protocols.h"

#include <gtest/gtest.h>

#include <cmath>

#include "models/transfers/flow_model.h"
#include "sim/config/diagnostics.h"
#include "tests/unit/models/transfers/flow_checks.h"
#include "tests/unit/models/transfers/test_systems.h"

namespace orrery::protocols_test {
namespace {

using namespace orrery::fixtures;

Transfer all_reduce(Bytes bytes, int ranks = 8) {
  return transfer(TransferKind::kAllReduce, bytes, {range(0, ranks)});
}

double microseconds(Seconds time) { return time.base() * 1e6; }

TEST(Protocols, ASmallRingOfLlIsItsLaunchAndItsHops) {
  // 14 steps of 0.9 us and 4 us; 8 bytes a rank leave threads idle and the rest is negligible.
  SystemConfig system = with_nccl(dgx_h100());
  system.scale_up.protocols->launch.value = 4_us;
  system.scale_up.protocols->ll_hop.value = 0.9_us;
  const PricedTransfer priced = FlowModel(system, 1).price(all_reduce(64_B));
  EXPECT_EQ(priced.algorithm, "ring");
  EXPECT_EQ(priced.protocol, "ll");
  EXPECT_NEAR(microseconds(priced.isolated_time), 16.6, 0.05);
}

TEST(Protocols, ALargeRingOfSimpleReachesItsShareOfTheLine) {
  SystemConfig system = with_nccl(dgx_h100());
  const ProtocolsConfig& protocols = *system.scale_up.protocols;
  const double bytes = 8e9;
  const PricedTransfer priced =
      FlowModel(system, 1, "ring", "simple").price(all_reduce(Bytes(bytes)));
  const double wire = 2 * 7.0 / 8 * bytes / (450e9 * protocols.simple_efficiency.value);
  EXPECT_NEAR(priced.isolated_time.base() / wire, 1, 0.06);
  EXPECT_GT(priced.isolated_time.base(), wire);
}

TEST(Protocols, TheLibraryTakesLlThenLl128ThenSimple) {
  const FlowModel network(with_nccl(dgx_h100()), 1);
  const auto protocol = [&](Bytes bytes) {
    return network.price(transfer(TransferKind::kAllGather, bytes, {range(0, 8)})).protocol;
  };
  EXPECT_EQ(protocol(1_MiB), "ll");
  EXPECT_EQ(protocol(16_MiB), "ll128");
  EXPECT_EQ(protocol(256_MiB), "simple");
}

TEST(Protocols, SwitchesReduceFromAThresholdOnAndNoBytes) {
  const FlowModel network(with_nccl(dgx_h100()), 1);
  EXPECT_EQ(network.price(all_reduce(1_GiB, 8)).algorithm, "nvls");
  EXPECT_EQ(network.price(all_reduce(1_GiB, 5)).algorithm, "nvls");
  EXPECT_EQ(network.price(all_reduce(1_GiB, 4)).algorithm, "ring");
  Transfer sums = all_reduce(1_GiB);
  sums.byte_sums = true;
  EXPECT_EQ(network.price(sums).algorithm, "ring");
}

/// Whether some gather of a few MiB goes by the switches.
bool gathers_by_switches(const SystemConfig& system, int ranks) {
  const FlowModel network(with_nccl(system), 1);
  for (double bytes = 1 << 20; bytes <= 1 << 28; bytes *= 1.25) {
    const Transfer gather = transfer(TransferKind::kAllGather, Bytes(bytes), {range(0, ranks)});
    if (network.price(gather).algorithm == "nvls") return true;
  }
  return false;
}

// NCCL's tuner: 25 us and 0.85 of the channels one way, against 0.6 us a hop of LL and 0.39 of the
// line: 8 ranks never, 16 from 4.4 to 10.8 MB of 371 GB/s; more than 32 have no buffers for it.
TEST(Protocols, GathersGoBySwitchesWhereTheTunerExpectsLessOfThem) {
  EXPECT_FALSE(gathers_by_switches(dgx_h100(), 8));
  EXPECT_TRUE(gathers_by_switches(nvl72(), 16));
  EXPECT_FALSE(gathers_by_switches(nvl72(), 64));
}

TEST(Protocols, SumsOfBytesTakeLongerAndGathersOfBytesDoNot) {
  const FlowModel network(with_nccl(dgx_h100()), 1, "ring", "simple");
  for (const TransferKind kind : {TransferKind::kReduceScatter, TransferKind::kAllGather}) {
    const Transfer words = transfer(kind, 1_GiB, {range(0, 8)});
    Transfer bytes = words;
    bytes.byte_sums = true;
    const double ratio = network.isolated_time(bytes) / network.isolated_time(words);
    if (kind == TransferKind::kReduceScatter) {
      EXPECT_GT(ratio, 1.01);
    } else {
      EXPECT_EQ(ratio, 1);
    }
  }
}

TEST(Protocols, HalfOfTheBytesOfSimpleTravelDuringItsSteps) {
  SystemConfig system = with_nccl(dgx_h100());
  ProtocolsConfig& protocols = *system.scale_up.protocols;
  protocols.launch.value = 4_us;
  protocols.simple_setup.value = 6_us;
  protocols.simple_hop.value = 10_us;
  protocols.simple_efficiency.value = 0.8;
  protocols.own_copy.value = 0;
  protocols.fill.value = 0;
  const FlowModel network(system, 1, "ring", "simple");
  // 7 steps of 10 us; 7/8 of 36 MB take 87.5 us, which is less than two of those chains; of 360 MB
  // 875 us, during which the steps disappear.
  const auto time = [&](Bytes bytes) {
    return microseconds(
        network.isolated_time(transfer(TransferKind::kReduceScatter, bytes, {range(0, 8)})));
  };
  EXPECT_NEAR(time(Bytes(36e6)), 10 + 70 + 87.5 / 2, 1e-3);
  EXPECT_NEAR(time(Bytes(360e6)), 10 + 875, 1e-3);
}

TEST(Protocols, WhoWritesIntoTheBuffersOfOthersWaitsForThem) {
  const SystemConfig system = with_nccl(dgx_h100());
  const FlowModel network(system, 1, "ring", "simple");
  const auto time = [&](TransferKind kind) {
    return microseconds(network.isolated_time(transfer(kind, 64_MiB, {range(0, 8)})));
  };
  const double hop = microseconds(system.scale_up.protocols->ll_hop.value);
  EXPECT_NEAR(time(TransferKind::kAllGather) - time(TransferKind::kReduceScatter), 2 * hop, 1e-3);
}

TEST(Protocols, MoreRanksWriteMoreInGathersOfLlButNotInReductions) {
  const SystemConfig system = with_nccl(dgx_h100());
  const FlowModel network(system, 1, "ring", "ll");
  const auto written = [&](int ranks) {
    const auto time = [&](TransferKind kind) {
      return microseconds(network.isolated_time(transfer(kind, 16_KiB * ranks, {range(0, ranks)})));
    };
    return time(TransferKind::kAllGather) - time(TransferKind::kReduceScatter);
  };
  const double write = microseconds(system.scale_up.protocols->ll_write.value);
  EXPECT_NEAR(written(2), 0, 1e-3);
  EXPECT_NEAR(written(8), 6 * write, 1e-3);
}

TEST(Protocols, SmallMessagesInsideASystemGoByLl) {
  SystemConfig system = with_nccl(dgx_h100());
  system.scale_up.protocols->p2p_ll_limit.value = 64_KiB;
  const FlowModel network(system, 2);
  const auto protocol = [&](Bytes message, int ranks) {
    return network.price(transfer(TransferKind::kAllToAll, message * ranks, {range(0, ranks)}))
        .protocol;
  };
  EXPECT_EQ(protocol(64_KiB, 8), "ll");
  EXPECT_EQ(protocol(65_KiB, 8), "simple");
  EXPECT_EQ(protocol(1_KiB, 16), "simple");
}

TEST(Protocols, EveryPriorHasASource) {
  const ProtocolsConfig prior;
  for (const ProtocolParameter& parameter : protocol_parameters()) {
    const std::string source =
        std::visit([&](auto member) { return (prior.*member).source; }, parameter.member);
    EXPECT_FALSE(source.empty()) << parameter.name;
  }
}

TEST(Protocols, NoProtocolBeatsTheLinks) {
  const SystemConfig system = with_nccl(dgx_h100());
  for (const char* protocol : {"ll", "ll128", "simple"}) {
    const FlowModel network(system, 1, "ring", protocol);
    for (double bytes = 256; bytes < 1e10; bytes *= 3) {
      const PricedTransfer priced = network.price(all_reduce(Bytes(bytes)));
      EXPECT_GE(priced.isolated_time.base(), 2 * 7.0 / 8 * bytes / 450e9) << protocol << bytes;
    }
  }
}

TEST(Protocols, MoreBytesOfOneProtocolAreNeverFaster) {
  const SystemConfig system = with_nccl(dgx_h100());
  for (const char* protocol : {"ll", "ll128", "simple"}) {
    const FlowModel network(system, 1, "ring", protocol);
    for (const TransferKind kind :
         {TransferKind::kAllReduce, TransferKind::kAllGather, TransferKind::kReduceScatter}) {
      Seconds before;
      for (double bytes = 64; bytes < 1e10; bytes *= 1.3) {
        const Seconds time = network.isolated_time(transfer(kind, Bytes(bytes), {range(0, 8)}));
        EXPECT_GE(time, before) << protocol << ' ' << to_string(kind) << ' ' << bytes;
        before = time;
      }
    }
  }
}

TEST(Protocols, LoadsAndLatencyAddUpToTheIsolatedTime) {
  const FlowModel network(with_nccl(dgx_h100()), 2);
  for (const int ranks : {4, 8, 16}) {
    const PricedTransfer priced = network.price(all_reduce(256_MiB, ranks));
    double slowest = 0;
    for (const LinkLoad& load : priced.cost.loads)
      slowest = std::max(slowest, load.bytes / network.capacities()[load.link].base());
    EXPECT_NEAR(to_seconds(priced.cost.latency).base() + slowest, priced.isolated_time.base(),
                2e-12);
  }
}

TEST(Protocols, AStepBetweenSystemsCostsMoreThanOneInside) {
  const SystemConfig system = with_nccl(dgx_h100());
  const double inside =
      microseconds(FlowModel(system, 1, "ring", "ll").isolated_time(all_reduce(64_B)));
  const Transfer across = transfer(TransferKind::kAllReduce, 64_B, {{0, 1, 2, 3, 8, 9, 10, 11}});
  EXPECT_GT(microseconds(FlowModel(system, 2, "ring", "ll").isolated_time(across)), inside + 4);
}

TEST(Protocols, BetweenSystemsTheTunerLimitsLlHoweverManyNicsThereAre) {
  SystemConfig system = with_nccl(dgx_h100());
  const auto protocol = [&] {
    return FlowModel(system, 4).price(all_reduce(256_KiB, 32)).protocol;
  };
  EXPECT_EQ(protocol(), "ll128");
  system.scale_up.protocols->nominal_ll_pair.value = 1000_GBps;
  EXPECT_EQ(protocol(), "ll128");
  system.scale_up.protocols->nominal_ll_systems.value = 1000_GBps;
  EXPECT_EQ(protocol(), "ll");
}

TEST(Protocols, EachStepOfARingBetweenSystemsWaitsForItsPosts) {
  SystemConfig system = with_nccl(dgx_h100());
  const auto price = [&](const char* algorithm, const char* protocol, int systems) {
    return FlowModel(system, systems, algorithm, protocol).price(all_reduce(64_B, 8 * systems));
  };
  for (const char* protocol : {"ll", "ll128", "simple"}) {
    const int posts = protocol == std::string("simple") ? 3 : 1;
    system.scale_up.protocols->net_post.value = 5_us;
    const PricedTransfer slow = price("ring", protocol, 2);
    const double inside = microseconds(price("ring", protocol, 1).isolated_time);
    const double tree = microseconds(price("tree", protocol, 2).isolated_time);
    system.scale_up.protocols->net_post.value = 4_us;
    EXPECT_NEAR(microseconds(slow.isolated_time - price("ring", protocol, 2).isolated_time),
                posts * slow.scale_up_steps, 1e-3);
    EXPECT_EQ(microseconds(price("ring", protocol, 1).isolated_time), inside);
    EXPECT_EQ(microseconds(price("tree", protocol, 2).isolated_time), tree);
  }
}

TEST(Protocols, AnUnknownProtocolIsAUserError) {
  EXPECT_THROW(FlowModel(dgx_h100(), 1, "auto", "ll64"), config::ConfigError);
}

}  // namespace
}  // namespace orrery::protocols_test
