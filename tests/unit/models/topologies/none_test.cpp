// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <stdexcept>

#include "models/transfers/flow_model.h"
#include "sim/config/diagnostics.h"
#include "tests/unit/models/transfers/test_systems.h"

namespace orrery::none_test {
namespace {

using orrery::fixtures::dgx_h100;

SystemConfig alone() {
  SystemConfig system = dgx_h100();
  system.accelerators.value = 1;
  system.accelerators_per_node = 1;
  system.scale_up.set_kind("none");
  return system;
}

TEST(NoFabric, OneRankHasNoLinks) {
  const FlowModel network(alone(), 1);
  EXPECT_EQ(network.topology().link_count(LinkKind::kScaleUp), 0U);
}

TEST(NoFabric, SeveralRanksAreAUserError) {
  SystemConfig system = alone();
  system.accelerator.dies = 2;
  EXPECT_THROW(FlowModel(system, 1), config::ConfigError);
}

// Two such systems meet in the network between systems.
TEST(NoFabric, SystemsOfOneRankAreJoinedByTheirNetwork) {
  const FlowModel network(alone(), 2);
  EXPECT_GE(network.route(0, 1).size(), 2U);
}

}  // namespace
}  // namespace orrery::none_test
