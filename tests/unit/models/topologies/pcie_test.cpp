// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "models/topologies/pcie_config.h"
#include "sim/config/diagnostics.h"
#include "tests/unit/models/transfers/flow_checks.h"
#include "tests/unit/models/transfers/test_systems.h"

namespace orrery::pcie_test {
namespace {

using namespace orrery::fixtures;

// 16 lanes of 16 GT/s are 32 GB/s, of which 128 / 130 are data; 256 of 280 B of a packet are
// payload, and the link layer leaves 0.92: 26.50 GB/s.
TEST(PcieRate, IsLanesTimesCodingTimesLinkLayerTimesPayload) {
  EXPECT_NEAR(pcie_rate(4, 16, Bytes(256), 1).base(), 32e9 * 128 / 130 * 256 / 280, 1);
  EXPECT_NEAR(pcie_rate(4, 16, Bytes(256), 0.92).base(), 26.50e9, 5e6);
  EXPECT_NEAR(pcie_rate(3, 16, Bytes(256), 0.92).base(), 13.25e9, 5e6);
  EXPECT_NEAR(pcie_rate(5, 8, Bytes(256), 0.92).base(), 26.50e9, 5e6);
  EXPECT_NEAR(pcie_rate(4, 16, Bytes(128), 0.92).base(), 32e9 * 128 / 130 * 0.92 * 128 / 152, 1);
  // Flits of 256 B with 236 of packets; what acknowledges them is in the flit.
  EXPECT_NEAR(pcie_rate(6, 16, Bytes(256), 0.5).base(), 128e9 * 236 / 256 * 256 / 272, 1);
}

PcieConfig& pcie_of(SystemConfig& system) { return fabric_keys<PcieTopology>(system).pcie; }

/// 8 cards, 4 behind each of two switches of two processors. Cards have 26.5 GB/s.
SystemConfig box() {
  SystemConfig system = ideal_system(8, 8, pcie_rate(4, 16, Bytes(256), 0.92), 1, 100_Gbitps);
  system.scale_up.set_kind("pcie");
  PcieConfig& pcie = pcie_of(system);
  pcie.packages_per_switch = 4;
  pcie.sockets = 2;
  pcie.socket_link.value = 20_GBps;
  system.host.memory_bandwidth.value = 400_GBps;
  return system;
}

std::vector<std::string> route(const SystemConfig& system, int source, int destination) {
  const FlowModel network(system, 1);
  std::vector<std::string> names;
  for (const Hop& hop : network.route(source, destination)) {
    EXPECT_EQ(hop.share, 1);
    names.push_back(network.topology().bundle_name(hop.bundle));
  }
  return names;
}

std::string card(int number) { return "system0/node0/accelerator" + std::to_string(number); }

using Names = std::vector<std::string>;

TEST(Pcie, PeersOfOneSwitchDoNotLeaveIt) {
  EXPECT_EQ(route(box(), 0, 3), (Names{card(0) + "->system0/pcie0", "system0/pcie0->" + card(3)}));
}

TEST(Pcie, AccessControlSendsThemThroughTheRootComplex) {
  SystemConfig system = box();
  pcie_of(system).acs = true;
  EXPECT_EQ(route(system, 0, 3),
            (Names{card(0) + "->system0/pcie0", "system0/pcie0->system0/processor0",
                   "system0/processor0->system0/pcie0", "system0/pcie0->" + card(3)}));
}

TEST(Pcie, FartherPeersPassTheMemoryOfTheReceiversProcessor) {
  EXPECT_EQ(route(box(), 0, 5),
            (Names{card(0) + "->system0/pcie0", "system0/pcie0->system0/processor0",
                   "system0/processor0->system0/processor1", "system0/processor1->system0/memory1",
                   "system0/processor1->system0/pcie1", "system0/pcie1->" + card(5)}));
}

TEST(Pcie, PeersThatMayCrossProcessorsLeaveTheMemoryAlone) {
  SystemConfig system = box();
  pcie_of(system).peers = PcieLevel::kSys;
  system.host.memory_bandwidth.value = BytesPerSecond(0);
  EXPECT_EQ(route(system, 0, 5),
            (Names{card(0) + "->system0/pcie0", "system0/pcie0->system0/processor0",
                   "system0/processor0->system0/processor1", "system0/processor1->system0/pcie1",
                   "system0/pcie1->" + card(5)}));
}

TEST(Pcie, SwitchesThatAreJoinedAreOnePath) {
  SystemConfig system = box();
  pcie_of(system).packages_per_switch = 2;
  EXPECT_EQ(route(system, 0, 2).size(), 5U);  // over the processor and its memory
  pcie_of(system).switch_lanes = 16;
  EXPECT_EQ(route(system, 0, 2), (Names{card(0) + "->system0/pcie0", "system0/pcie0->system0/pcie1",
                                        "system0/pcie1->" + card(2)}));
}

TEST(Pcie, BridgesJoinNeighboursAlone) {
  SystemConfig system = box();
  pcie_of(system).bridge = 2;
  EXPECT_EQ(route(system, 0, 1), (Names{card(0) + "->" + card(1)}));
  EXPECT_EQ(route(system, 1, 2).size(), 2U);
  pcie_of(system).peers = PcieLevel::kNone;
  EXPECT_EQ(route(system, 0, 1).size(), 5U);
}

// Three cards are a pair and one alone; a bridge of one card leads nowhere.
TEST(Pcie, CardsThatABridgeDoesNotDivideAreLeftAlone) {
  SystemConfig system = box();
  pcie_of(system).bridge = 2;
  pcie_of(system).sockets = 1;
  system.accelerators.value = system.accelerators_per_node = 3;
  EXPECT_EQ(route(system, 0, 1), (Names{card(0) + "->" + card(1)}));
  EXPECT_EQ(route(system, 1, 2).size(), 2U);
  EXPECT_EQ(route(system, 2, 0).size(), 2U);
  system.accelerators.value = system.accelerators_per_node = 1;
  EXPECT_EQ(FlowModel(system, 2).topology().ranks(), 2);
}

Seconds time(const SystemConfig& system, int ranks, const std::string& algorithm = "ring") {
  return FlowModel(system, 1, algorithm)
      .price(transfer(TransferKind::kAllReduce, 1_GB, {range(0, ranks)}))
      .isolated_time;
}

// A ring puts 2 (n - 1) / n of the buffer on each link that it passes; the link between processors
// has one flow each way, and the memory of a processor those that end at its cards.
TEST(Pcie, RingsAreAsFastAsTheirNarrowestLink) {
  SystemConfig system = box();
  const double bytes = 2 * 7.0 / 8 * 1e9;
  const double latency = 14e-6;
  EXPECT_NEAR(time(system, 8).base(), latency + bytes / 20e9, 1e-9);
  pcie_of(system).socket_link.value = 100_GBps;
  const double slot = pcie_rate(4, 16, Bytes(256), 0.92).base();
  EXPECT_NEAR(time(system, 8).base(), latency + bytes / slot, 1e-9);
  // Without peers all 4 flows of a processor share the uplink of their switch,
  pcie_of(system).peers = PcieLevel::kNone;
  EXPECT_NEAR(time(system, 8).base(), latency + 4 * bytes / slot, 1e-9);
  // and without switches its memory, which writes and reads them: 400 GB/s / 2 processors / 2 / 4
  // flows.
  pcie_of(system).packages_per_switch = 0;
  EXPECT_NEAR(time(system, 8).base(), latency + bytes / 25e9, 1e-9);
  EXPECT_NEAR(time(system, 4).base(), 6e-6 + 1.5e9 / 25e9, 1e-9);
  EXPECT_NEAR(time(system, 2).base(), 2e-6 + 1e9 / slot, 1e-9);
}

TEST(Pcie, CardsAreNoFasterThanTheirPorts) {
  SystemConfig system = box();
  pcie_of(system).socket_link.value = 100_GBps;
  system.accelerator.scale_up.bandwidth.value = 10_GBps;
  system.accelerator.scale_up.kind = "PCIe 4.0 x16";
  EXPECT_NEAR(time(system, 2).base(), 2e-6 + 1e9 / 10e9, 1e-9);
  // The port of a bridge says nothing of the slot.
  system.accelerator.scale_up.kind = "NVLink 3";
  const double slot = pcie_rate(4, 16, Bytes(256), 0.92).base();
  EXPECT_NEAR(time(system, 2).base(), 2e-6 + 1e9 / slot, 1e-9);
}

// Around pairs each way uses the slots of every second card: both together all of them, at half of
// the bytes.
TEST(Pcie, RingsOfBridgedPairsGoBothWaysAround) {
  SystemConfig system = box();
  pcie_of(system).packages_per_switch = 8;
  pcie_of(system).sockets = 1;
  const double slot = pcie_rate(4, 16, Bytes(256), 0.92).base();
  EXPECT_NEAR(time(system, 8).base(), 14e-6 + 1.75e9 / slot, 1e-9);
  pcie_of(system).bridge = 2;
  system.accelerator.scale_up.bandwidth.value = 300_GBps;
  EXPECT_NEAR(time(system, 8).base(), 14e-6 + 1.75e9 / 2 / slot, 1e-9);
  pcie_of(system).bridge_efficiency.value = 0.5;
  EXPECT_NEAR(time(system, 2).base(), 2e-6 + 1e9 / 150e9, 1e-9);
}

TEST(Pcie, CountsThatDoNotFitAreRefused) {
  const auto refuse = [](auto change) {
    SystemConfig system = box();
    change(system);
    EXPECT_THROW(FlowModel(system, 1), config::ConfigError);
  };
  refuse([](SystemConfig& s) { pcie_of(s).sockets = 3; });
  refuse([](SystemConfig& s) { pcie_of(s).bridge = 1; });
  refuse([](SystemConfig& s) { s.host.memory_bandwidth.value = BytesPerSecond(0); });
}

}  // namespace
}  // namespace orrery::pcie_test
