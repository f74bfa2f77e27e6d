// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <string>

#include "models/topologies/fabric.h"
#include "sim/config/diagnostics.h"
#include "tests/unit/models/network/test_systems.h"

namespace orrery {
namespace {

using namespace orrery::testing;

struct Machine {
  Machine(const SystemConfig& system, int copies, const std::vector<LinkFault>& faults)
      : fabric(build_fabric(system, rank_layout(system, copies), topology, faults)) {}
  double share(int source, int destination, const std::string& link) const {
    Route route;
    fabric->append_route(source, destination, route);
    double sum = 0;
    for (const Hop& hop : route) {
      if (topology.bundles()[hop.bundle].name == link) sum += hop.share;
    }
    return sum;
  }
  BytesPerSecond capacity(const std::string& link) const {
    for (const Bundle& bundle : topology.bundles()) {
      if (bundle.name == link) return bundle.capacity;
    }
    throw std::out_of_range(link);
  }
  Topology topology;
  std::unique_ptr<Fabric> fabric;
};

std::string error_of(const SystemConfig& system, int copies, const std::vector<LinkFault>& faults) {
  try {
    const Machine machine(system, copies, faults);
  } catch (const config::ConfigError& error) {
    return error.what();
  }
  return "no error";
}

const std::string kFrom0To1 = "system0/node0/accelerator0->system0/node0/accelerator1";

TEST(LinkFaults, AMessageGoesAroundALinkThatIsDown) {
  EXPECT_EQ(Machine(mi300x(), 1, {}).share(0, 1, kFrom0To1), 1);
  const Machine machine(mi300x(), 1, {{kFrom0To1, 0}});
  EXPECT_EQ(machine.share(0, 1, kFrom0To1), 0);
  EXPECT_EQ(machine.fabric->hops(0, 1), 2);
  // Over the other six, equally.
  EXPECT_NEAR(machine.share(0, 1, "system0/node0/accelerator0->system0/node0/accelerator5"),
              1.0 / 6, 1e-12);
  EXPECT_EQ(machine.fabric->hops(1, 0), 1);  // the other way still stands
}

TEST(LinkFaults, OfOneSystemLeaveTheOthersAlone) {
  const Machine machine(mi300x(), 2, {{kFrom0To1, 0}});
  EXPECT_EQ(machine.fabric->hops(0, 1), 2);
  EXPECT_EQ(machine.fabric->hops(8, 9), 1);
}

TEST(LinkFaults, ASlowLinkOfABundleTakesItsShare) {
  const std::string up = "system0/node0/accelerator3->nvswitches";
  const Machine machine(dgx_h100(), 1, {{up, 17.0 / 18}});
  EXPECT_NEAR(machine.capacity(up) / 425_GBps, 1, 1e-12);
}

TEST(LinkFaults, ALinkWithoutAnotherWayIsAUserErrorThatNamesItsEnds) {
  const std::string nic = "system1/node0/accelerator2->group0/leaf2";
  EXPECT_NE(error_of(dgx_h100(), 2, {{nic, 0}}).find(nic), std::string::npos);
}

TEST(LinkFaults, ARankThatIsCutOffIsAUserErrorThatNamesBothEnds) {
  std::vector<LinkFault> faults;
  for (int other = 1; other < 8; ++other) {
    faults.push_back(
        {"system0/node0/accelerator" + std::to_string(other) + "->system0/node0/accelerator0", 0});
  }
  const std::string error = error_of(mi300x(), 1, faults);
  EXPECT_NE(error.find("no way from system0/node0/accelerator1 to system0/node0/accelerator0"),
            std::string::npos)
      << error;
}

TEST(LinkFaults, AnUnknownLinkIsAUserErrorThatSuggestsTheNearest) {
  const std::string error = error_of(dgx_h100(), 1, {{"system0/node0/accelerator3->nvswitch", 0}});
  EXPECT_NE(error.find("did you mean 'system0/node0/accelerator3->nvswitches'"), std::string::npos)
      << error;
}

}  // namespace
}  // namespace orrery
