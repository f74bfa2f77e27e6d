// SPDX-License-Identifier: Apache-2.0
// What holds of small collectives on every system that ships.
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "models/transfers/flow_model.h"
#include "sim/app/pricing/machine.h"
#include "sim/config/library.h"
#include "sim/config/load.h"
#include "sim/machine/collective_start.h"
#include "sim/machine/system_config.h"

namespace orrery::collective_start_test {
namespace {

SystemConfig shipped(const std::string& name) {
  const config::Library& library = config::default_library();
  return config::load<SystemConfig>(library.locate("systems", name, ""), library, "systems");
}

/// As experiments have it: measured parameters and assumed starts in place.
SystemConfig as_simulated(const std::string& name) {
  return Machine(shipped(name), 1, "auto").system();
}

Transfer all_reduce(Bytes bytes, int ranks) {
  Transfer transfer;
  transfer.name = "small";
  transfer.kind = TransferKind::kAllReduce;
  transfer.bytes = bytes;
  transfer.groups = {{}};
  for (int rank = 0; rank < ranks; ++rank) transfer.groups[0].push_back(rank);
  return transfer;
}

TEST(CollectiveStart, ASmallAllReduceTakesAtLeastAStart) {
  for (const std::string& name : config::default_library().names("systems")) {
    const SystemConfig system = as_simulated(name);
    if (system.ranks() < 2 || system.scale_up.kind == "dimensions") continue;
    SCOPED_TRACE(name);
    const ScaleUpConfig& fabric = system.scale_up;
    const Seconds start = fabric.protocols ? fabric.protocols->launch.value : fabric.launch.value;
    EXPECT_GT(start.base(), 0);
    EXPECT_GE(FlowModel(system, 1).isolated_time(all_reduce(Bytes(1024), 2)).base(), start.base());
  }
}

TEST(CollectiveStart, AStartThatASystemSaysIsNotAssumed) {
  EXPECT_FALSE(start_is_assumed(as_simulated("cm384")));           // its own launch
  EXPECT_FALSE(start_is_assumed(as_simulated("dgx_h100")));        // protocols
  EXPECT_TRUE(start_is_assumed(as_simulated("gaudi3_platform")));  // neither
}

TEST(CollectiveStart, AnAssumedStartIsTheLeastOfItsInterval) {
  const Machine machine(shipped("gaudi3_platform"), 1, "auto");
  const Transfer small = all_reduce(Bytes(1024), 8);
  const Seconds time = FlowModel(machine.system(), 1).isolated_time(small);
  double most = 0;
  for (const double factor : machine.draws(small, time, 1)) {
    EXPECT_GE(factor, 1);
    most = std::max(most, factor);
  }
  EXPECT_GT(most, 1.5);
}

TEST(CollectiveStart, MoreLatencyOfTheNetworkNeverMakesACollectiveFaster) {
  for (const std::string& name : config::default_library().names("systems")) {
    SystemConfig system = as_simulated(name);
    if (!system.accelerator.scale_out.present() || system.ranks() > 64) continue;
    for (const double bytes : {1e3, 1e6, 1e9}) {
      SCOPED_TRACE(name + ", " + std::to_string(bytes) + " B");
      Seconds before;
      for (const double latency : {1e-6, 5e-6, 15e-6, 100e-6}) {
        system.scale_out.latency.value = Seconds(latency);
        const Seconds time =
            FlowModel(system, 2).isolated_time(all_reduce(Bytes(bytes), 2 * system.ranks()));
        EXPECT_GE(time.base(), before.base());
        before = time;
      }
    }
  }
}

}  // namespace
}  // namespace orrery::collective_start_test
