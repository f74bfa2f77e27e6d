// SPDX-License-Identifier: Apache-2.0
// Collectives of whole clusters: building the network of DGX H100, pricing one collective.
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "models/network/flow_model.h"
#include "sim/config/library.h"
#include "sim/config/load.h"
#include "sim/machine/system_config.h"
#include "tests/bench/contest.h"
#include "tests/bench/contestants.h"

namespace orrery::bench {
namespace {

Sample price(TransferKind kind, int ranks, const std::string& algorithm) {
  const config::Library& library = config::default_library();
  const auto system =
      config::load<SystemConfig>(library.locate("systems", "dgx_h100", ""), library, "systems");
  Transfer transfer;
  transfer.name = "bench";
  transfer.kind = kind;
  transfer.bytes = Bytes(1 << 30);
  transfer.groups.emplace_back(static_cast<std::size_t>(ranks));
  std::iota(transfer.groups[0].begin(), transfer.groups[0].end(), 0);
  const double memory = allocated_bytes(), begin = cpu_seconds();
  const FlowModel network(system, ranks / system.ranks(), algorithm);
  const PricedTransfer priced = network.price(transfer);
  const double seconds = cpu_seconds() - begin;
  return {priced.isolated_time.base() > 0 ? seconds : 0, allocated_bytes() - memory};
}

}  // namespace

void add_network_contest() {
  const auto add = [](const char* id, TransferKind kind, int ranks, const std::string& algorithm,
                      double most) {
    const std::string name =
        std::string("network/") + to_string(kind) + "/" + std::to_string(ranks);
    add_contestant(name, [=] { return price(kind, ranks, algorithm); });
    add_comparison(
        {id, algorithm + " " + to_string(kind) + " on " + std::to_string(ranks) + " ranks [s]",
         name, "", Quantity::kSeconds, Limit::kAtMost, most, false});
    add_comparison({id, algorithm + " " + to_string(kind) + ", memory [B]", name, "",
                    Quantity::kBytes, Limit::kAtMost, 3000.0 * ranks, false});
  };
  add("N1", TransferKind::kAllReduce, 4096, "ring", 0.1);
  add("N2", TransferKind::kAllToAll, 16384, "auto", 1);
  add("N3", TransferKind::kAllReduce, 98304, "auto", 1);
}

}  // namespace orrery::bench
