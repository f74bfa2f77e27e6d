// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <numeric>
#include <string>

#include "models/topologies/link_states.h"
#include "tests/unit/models/transfers/test_systems.h"

namespace orrery::fault_test {
namespace {

using namespace orrery::fixtures;

struct Fault {
  std::string link;
  double share = 0;
};

struct Machine {
  Machine(const SystemConfig& system, int copies, const std::vector<Fault>& faults)
      : fabric(build_fabric(system, rank_layout(system, copies), topology)) {
    LinkStates links(topology, *fabric);
    for (const Fault& fault : faults) {
      if (!links.set(fault.link, fault.share)) throw std::out_of_range(fault.link);
    }
    for (const LinkFault& fault : links.faults()) {
      fabric->degrade(fault.bundle, fault.share, topology);
    }
  }
  double share(int source, int destination, const std::string& link) const {
    Route route;
    fabric->append_route(source, destination, route);
    double sum = 0;
    for (const Hop& hop : route) {
      if (topology.bundle_name(hop.bundle) == link) sum += hop.share;
    }
    return sum;
  }
  int hops(int source, int destination) const { return fabric->hops(source, destination); }
  BytesPerSecond capacity(const std::string& link) const {
    for (BundleId i = 0; i < topology.bundles().size(); ++i) {
      if (topology.bundle_name(i) == link) return topology.bundles()[i].capacity;
    }
    throw std::out_of_range(link);
  }
  Topology topology;
  std::unique_ptr<Fabric> fabric;
};

const std::string kFrom0To1 = "system0/node0/accelerator0->system0/node0/accelerator1";

TEST(LinkFaults, AMessageGoesAroundALinkThatIsDown) {
  EXPECT_EQ(Machine(mi300x(), 1, {}).share(0, 1, kFrom0To1), 1);
  const Machine machine(mi300x(), 1, {{kFrom0To1}});
  EXPECT_EQ(machine.share(0, 1, kFrom0To1), 0);
  EXPECT_EQ(machine.hops(0, 1), 2);
  // Libraries relay by one peer, the first of equals.
  EXPECT_EQ(machine.share(0, 1, "system0/node0/accelerator0->system0/node0/accelerator2"), 1);
  EXPECT_EQ(machine.share(0, 1, "system0/node0/accelerator0->system0/node0/accelerator5"), 0);
  EXPECT_EQ(machine.hops(1, 0), 1);  // the other way still stands
}

TEST(LinkFaults, OfOneSystemLeaveTheOthersAlone) {
  const Machine machine(mi300x(), 2, {{kFrom0To1}});
  EXPECT_EQ(machine.hops(0, 1), 2);
  EXPECT_EQ(machine.hops(8, 9), 1);
}

TEST(LinkFaults, ASlowLinkOfABundleTakesItsShare) {
  const std::string up = "system0/node0/accelerator3->nvswitches";
  const Machine machine(dgx_h100(), 1, {{up, 17.0 / 18}});
  EXPECT_NEAR(machine.capacity(up) / 425_GBps, 1, 1e-12);
}

TEST(LinkFaults, AMessageWithoutAnotherWayKeepsTheOneThatIsDown) {
  const std::string up = "system0/node0/accelerator3->nvswitches";
  const Machine machine(dgx_h100(), 1, {{up, 0}});
  EXPECT_EQ(machine.share(3, 4, up), 1);
  EXPECT_EQ(machine.capacity(up), 0_GBps);
}

TEST(LinkFaults, ARankThatIsCutOffKeepsItsLastWay) {
  // All but the last of seven are gone around; over that one everything goes, dead or not.
  std::vector<Fault> faults;
  for (int other = 1; other < 8; ++other) {
    faults.push_back(
        {"system0/node0/accelerator" + std::to_string(other) + "->system0/node0/accelerator0"});
  }
  const Machine machine(mi300x(), 1, faults);
  EXPECT_EQ(machine.hops(1, 0), 2);
  EXPECT_EQ(machine.share(1, 0, faults.back().link), 1);
  EXPECT_EQ(machine.capacity(faults.back().link), 0_GBps);
}

TEST(LinkFaults, ATorusIsWalkedTheOtherWayRound) {
  const std::string link = "system0/node0/accelerator0->system0/node0/accelerator1";
  const Machine machine(tpu({6, 4}, 50_GBps), 1, {{link}});
  EXPECT_EQ(machine.share(0, 1, link), 0);
  EXPECT_EQ(machine.hops(0, 1), 5);
  EXPECT_EQ(machine.hops(0, 3), 3);  // half of it went over the link: now all goes the other way
  EXPECT_EQ(machine.share(0, 3, "system0/node0/accelerator0->system0/node1/accelerator1"), 1);
  EXPECT_EQ(machine.hops(6, 7), 1);  // another row
  // What a whole exchange puts on the links is what its messages do.
  std::vector<int> group(24);
  std::iota(group.begin(), group.end(), 0);
  std::vector<double> counted(machine.topology.bundles().size()), walked(counted.size());
  machine.fabric->add_exchange(group, 1, counted);
  machine.fabric->Fabric::add_exchange(group, 1, walked);
  for (std::size_t i = 0; i < counted.size(); ++i) EXPECT_NEAR(counted[i], walked[i], 1e-9) << i;
}

TEST(LinkFaults, AnOpenAxisHasNoOtherWay) {
  SystemConfig system = tpu({6}, 50_GBps, ", open_axes: [0]");
  system.accelerators_per_node = 6;
  const Machine machine(system, 1, {{kFrom0To1}});
  EXPECT_EQ(machine.share(0, 1, kFrom0To1), 1);
}

TEST(LinkFaults, ADeadNicIsGoneAroundOverTheNextRail) {
  const std::string nic2 = "system1/node0/accelerator2->group0/leaf2";
  const std::string nic3 = "system1/node0/accelerator3->group0/leaf3";
  const Machine machine(dgx_h100(), 2, {{nic2}});
  EXPECT_EQ(machine.share(10, 2, nic2), 0);
  EXPECT_EQ(machine.share(10, 2, nic3), 1);
  EXPECT_EQ(machine.share(10, 2, "system1/node0/accelerator2->nvswitches"), 1);
  EXPECT_EQ(machine.hops(10, 2), 2 + 4);  // to accelerator3, and back from the other one
  EXPECT_EQ(machine.share(11, 3, nic3), 1);
  EXPECT_EQ(machine.hops(2, 10), 2);  // the other way still stands
}

TEST(LinkFaults, WhatCannotReachANicTakesTheNextRailToo) {
  const std::string nic2 = "group0/leaf2->system1/node0/accelerator2";
  const std::string nic3 = "group0/leaf3->system1/node0/accelerator3";
  const Machine machine(dgx_h100(), 2, {{nic2}});
  EXPECT_EQ(machine.share(2, 10, nic2), 0);
  EXPECT_EQ(machine.share(2, 10, nic3), 1);
  EXPECT_EQ(machine.share(2, 10, "nvswitches->system1/node0/accelerator2"), 1);
}

TEST(LinkFaults, ADeadUplinkIsHashedAround) {
  SystemConfig system = dgx_h100();
  system.accelerators.value = system.accelerators_per_node = 2;
  system.scale_out.routing = Routing::kEcmp;
  system.scale_out.nodes_per_leaf_group = 2;
  system.scale_out.switch_ports = {8};
  const auto uplink = [](const Machine& machine) {  // that a message to the next group takes
    Route route;
    machine.fabric->append_route(0, 4, route);
    return machine.topology.bundle_name(route.at(1).bundle);
  };
  const std::string taken = uplink(Machine(system, 8, {}));
  EXPECT_EQ(link_class(taken), "leaf->spine");
  const Machine machine(system, 8, {{taken}});
  EXPECT_EQ(link_class(uplink(machine)), "leaf->spine");
  EXPECT_NE(uplink(machine), taken);
}

TEST(LinkStates, OneOfTheLinksOfABundleIsGoneWithItsSwitch) {
  const Machine machine(nvl72(), 1, {{"*nvswitch7"}, {"*nvswitch7->*"}});
  const std::string name = "system0/node0/accelerator3";
  EXPECT_NEAR(machine.capacity(name + "->nvswitches") / (17 * 50_GBps), 1, 1e-12);
  EXPECT_NEAR(machine.capacity("nvswitches->" + name) / (17 * 50_GBps), 1, 1e-12);
}

TEST(LinkStates, AClassNamesAllItsLinks) {
  const Machine machine(dgx_h100(), 2, {{"accelerator->leaf", 0.5}});
  for (BundleId i = 0; i < machine.topology.bundles().size(); ++i) {
    const Bundle& bundle = machine.topology.bundles()[i];
    const std::string name = machine.topology.bundle_name(i);
    const bool nic = bundle.kind == LinkKind::kScaleOut && bundle.source >= 0;
    if (nic) {
      EXPECT_EQ(bundle.capacity, 25_GBps) << name;
    } else {
      EXPECT_GE(bundle.capacity, 50_GBps) << name;
    }
  }
}

TEST(LinkStates, TheLastWordCounts) {
  Topology topology;
  const auto fabric = build_fabric(nvl72(), rank_layout(nvl72(), 1), topology);
  LinkStates links(topology, *fabric);
  EXPECT_TRUE(links.set("*->system0/nvswitch7", 0));
  EXPECT_TRUE(links.set("*->system0/nvswitch8", 0.5));
  ASSERT_EQ(links.faults().size(), 72U);
  EXPECT_NEAR(links.faults()[0].share, 16.5 / 18, 1e-12);
  EXPECT_TRUE(links.set("*->system0/nvswitch?", 1));
  EXPECT_TRUE(links.faults().empty());
  for (int chip = 0; chip < 18; ++chip)
    EXPECT_TRUE(links.set("*->system0/nvswitch" + std::to_string(chip), 0));
  EXPECT_EQ(links.faults()[0].share, 0);
  EXPECT_TRUE(links.set("accelerator->nvswitches", 1));
  EXPECT_TRUE(links.faults().empty());
}

TEST(LinkStates, AnUnknownLinkChangesNothingAndTheNearestIsSuggested) {
  Topology topology;
  const auto fabric = build_fabric(dgx_h100(), rank_layout(dgx_h100(), 1), topology);
  LinkStates links(topology, *fabric);
  EXPECT_FALSE(links.set("system0/node0/accelerator3->nvswitch", 0));
  EXPECT_EQ(links.nearest("system0/node0/accelerator3->nvswitch"),
            "system0/node0/accelerator3->nvswitches");
  EXPECT_EQ(links.nearest("acelerator->nvswitches"), "accelerator->nvswitches");
  EXPECT_EQ(links.nearest("spine->core"), "");
  EXPECT_TRUE(links.faults().empty());
}

}  // namespace
}  // namespace orrery::fault_test
