// SPDX-License-Identifier: Apache-2.0
// A broadcast and a reduction have no more to do than an all-reduce of the same bytes, on all
// systems that ship. A known library may do no better: NCCL and RCCL carry both by
// rings alone (src/graph/tuning.cc, ncclTopoInitTunerConstants).
#include <gtest/gtest.h>

#include <numeric>
#include <string>
#include <vector>

#include "models/transfers/flow_model.h"
#include "sim/config/library.h"
#include "sim/config/load.h"
#include "sim/machine/system_config.h"

namespace orrery::rooted_collectives_test {
namespace {

constexpr double kRounding = 1e-6;
constexpr int kMostRanks = 2048;

PricedTransfer price(const FlowModel& network, TransferKind kind, double bytes, int ranks) {
  Transfer transfer;
  transfer.name = to_string(kind);
  transfer.kind = kind;
  transfer.bytes = Bytes(bytes);
  transfer.groups = {std::vector<int>(static_cast<std::size_t>(ranks))};
  std::iota(transfer.groups[0].begin(), transfer.groups[0].end(), 0);
  return network.price(transfer);
}

TEST(RootedCollectives, AreNotSlowerThanAnAllReduceWhereNoLibraryIsKnown) {
  const config::Library& library = config::default_library();
  for (const std::string& name : library.names("systems")) {
    const auto system =
        config::load<SystemConfig>(library.locate("systems", name, ""), library, "systems");
    const int ranks = system.ranks();
    const bool by_library = system.scale_up.protocols &&
                            chooses_algorithms_on(*system.scale_up.protocols, system.scale_up.kind);
    if (ranks < 2 || ranks > kMostRanks || by_library) continue;
    const FlowModel network(system, 1);
    for (const double bytes : {157.0, 64e3, 4e6, 1e9}) {
      const PricedTransfer all = price(network, TransferKind::kAllReduce, bytes, ranks);
      for (const TransferKind kind : {TransferKind::kBroadcast, TransferKind::kReduce}) {
        const PricedTransfer rooted = price(network, kind, bytes, ranks);
        EXPECT_LE(rooted.isolated_time.base(), all.isolated_time.base() * (1 + kRounding))
            << name << ", " << bytes << " B: " << to_string(kind) << " by " << rooted.algorithm
            << ", all_reduce by " << all.algorithm;
      }
    }
  }
}

}  // namespace
}  // namespace orrery::rooted_collectives_test
