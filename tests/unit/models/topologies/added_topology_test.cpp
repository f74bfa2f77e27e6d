// SPDX-License-Identifier: Apache-2.0
// A topology with a key of its own in one file: this one registers it, and nothing else knows it.
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "models/topologies/fabric.h"
#include "models/transfers/flow_model.h"
#include "sim/config/load.h"
#include "sim/machine/system_config.h"
#include "tests/unit/models/transfers/flow_checks.h"

namespace orrery::added_topology_test {
namespace {

using namespace orrery::literals;

/// One hub: every package has `spokes` of its links to it.
struct HubTopology final : ScaleUpTopology {
  int spokes = 1;
  static const config::Schema<HubTopology>& schema() {
    static const auto schema =
        config::Schema<HubTopology>("hub", "one hub")
            .required("spokes", &HubTopology::spokes, "links of a package to the hub",
                      config::between(1, 100));
    return schema;
  }
  config::Fault fault(const SystemConfig& system) const override {
    if (spokes <= system.accelerator.scale_up.links.value) return {};
    return {"a package has fewer links than spokes", {"scale_up.spokes"}};
  }
  std::unique_ptr<Fabric> build(const SystemConfig& system, const RankLayout& layout,
                                Topology& topology) const override;
};

class HubFabric final : public Fabric {
 public:
  HubFabric(BytesPerSecond rate, int ranks, Topology& topology) {
    topology.add_switch("hub");
    for (int rank = 0; rank < ranks; ++rank) {
      up_.push_back(topology.add_bundle(topology.rank_name(rank), "hub",
                                        {LinkKind::kScaleUp, rate, 1, rank}));
      down_.push_back(
          topology.add_bundle("hub", topology.rank_name(rank), {LinkKind::kScaleUp, rate, 1, -1}));
    }
  }
  void append_route(int source, int destination, Route& route) const override {
    route.push_back({up_[index(source)]});
    route.push_back({down_[index(destination)]});
  }
  void draw(Topology& /*topology*/) const override {}

 private:
  std::vector<BundleId> up_, down_;
};

std::unique_ptr<Fabric> HubTopology::build(const SystemConfig& system, const RankLayout& layout,
                                           Topology& topology) const {
  const PortConfig& port = system.accelerator.scale_up;
  return std::make_unique<HubFabric>(port.bandwidth.value / port.links.value * spokes,
                                     layout.ranks(), topology);
}

const RegisterScaleUp<HubTopology> registered_hub("hub", "one hub of a test");

SystemConfig system_of(const std::string& scale_up) {
  config::Diagnostics diagnostics;
  const config::Library& library = config::default_library();
  const config::Node node = config::load_text(
      "{extends: dgx_h100, accelerators: 4, accelerators_per_node: 4, scale_up: " + scale_up + "}",
      "hub.yaml", diagnostics, library, "systems");
  auto system = config::read<SystemConfig>(node, diagnostics, library);
  diagnostics.throw_if_errors();
  return system;
}

std::string fault(const std::string& scale_up) {
  try {
    system_of(scale_up);
  } catch (const config::ConfigError& error) {
    return error.what();
  }
  return {};
}

// The ring sends 3/4 of 1 GB twice over links of 25 GB/s; a step takes the latency of the system
// that the file extends.
TEST(AddedTopology, PricesCollectivesFromYaml) {
  const auto time = [](int spokes) {
    SystemConfig system = system_of("{kind: hub, spokes: " + std::to_string(spokes) +
                                    ", latency: 1 us, efficiency: 1}");
    system.scale_up.protocols.reset();
    const FlowModel network(system, 1, "ring");
    return network.isolated_time(fixtures::transfer(TransferKind::kAllReduce, 1_GB, {{0, 1, 2, 3}}))
        .base();
  };
  EXPECT_NEAR(time(1), 6e-6 + 1.5e9 / 25e9, 1e-9);
  EXPECT_NEAR(time(3), 6e-6 + 1.5e9 / 75e9, 1e-9);
}

TEST(AddedTopology, LeavesKeysOfTheKindThatTheFileExtends) {
  EXPECT_EQ(fault("{kind: hub, spokes: 2}"), "");
  const std::string said = fault("{kind: hub, spokes: 2, links_per_switch: [18]}");
  EXPECT_NE(said.find("unknown key 'links_per_switch' in hub"), std::string::npos) << said;
  EXPECT_NE(said.find("'links_per_switch' is a key of: nvswitch"), std::string::npos) << said;
}

TEST(AddedTopology, MistakesInItsKeysHaveTheirPlace) {
  EXPECT_NE(fault("{kind: hub, spokes: 0}").find("hub.yaml:1:"), std::string::npos);
  EXPECT_NE(fault("{kind: hub}").find("missing key 'spokes' in hub"), std::string::npos);
  EXPECT_NE(fault("{kind: hub, spoke: 2}").find("did you mean 'spokes'?"), std::string::npos);
  EXPECT_NE(fault("{kind: hub, spokes: 19}").find("a package has fewer links than spokes"),
            std::string::npos);
  EXPECT_NE(fault("{spokes: 2}").find("'spokes' is a key of: hub"), std::string::npos);
}

}  // namespace
}  // namespace orrery::added_topology_test
