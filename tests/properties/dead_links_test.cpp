// SPDX-License-Identifier: Apache-2.0
// A link that is down makes nothing faster: on all systems that ship, for a link of each class and
// the busiest one of each transfer.
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <set>
#include <string>
#include <vector>

#include "models/transfers/flow_model.h"
#include "sim/app/pricing/machine.h"
#include "sim/config/library.h"
#include "sim/config/load.h"
#include "sim/machine/system_config.h"

namespace orrery::dead_links_test {
namespace {

constexpr double kRounding = 1e-9;
constexpr int kMostRanks = 576;  // of one system: larger ones repeat their parts

/// As experiments load it, measured parameters applied.
SystemConfig shipped(const std::string& name) {
  const config::Library& library = config::default_library();
  auto system = config::load<SystemConfig>(library.locate("systems", name, ""), library, "systems");
  const std::string calibration = network_calibration_file("auto", system);
  if (!calibration.empty()) loaded_network_calibration(calibration)->apply(system);
  return system;
}

Transfer transfer(TransferKind kind, Bytes bytes, std::vector<int> group) {
  Transfer t;
  t.name = to_string(kind);
  t.kind = kind;
  t.bytes = bytes;
  t.groups = {std::move(group)};
  return t;
}

/// Messages to the nearest and the farthest rank, and collectives among all.
std::vector<Transfer> transfers(int ranks) {
  using K = TransferKind;
  std::vector<int> all(static_cast<std::size_t>(ranks));
  std::iota(all.begin(), all.end(), 0);
  std::vector<Transfer> wanted;
  for (const double bytes : {4e3, 1e6, 1e9}) {
    for (const int other : {1, ranks - 1})
      wanted.push_back(transfer(K::kSendReceive, Bytes(bytes), {0, other}));
    for (const K kind :
         {K::kAllReduce, K::kAllGather, K::kReduceScatter, K::kAllToAll, K::kBroadcast, K::kReduce})
      wanted.push_back(transfer(kind, Bytes(bytes), all));
  }
  return wanted;
}

/// The first link of each class.
std::set<BundleId> one_of_each_class(const Topology& topology) {
  std::set<std::string> classes;
  std::set<BundleId> links;
  for (BundleId link = 0; link < topology.bundles().size(); ++link)
    if (classes.insert(link_class(topology.bundle_name(link))).second) links.insert(link);
  return links;
}

void expect_no_gain(const std::string& name, int copies) {
  const SystemConfig system = shipped(name);
  const FlowModel whole(system, copies);
  std::set<BundleId> links = one_of_each_class(whole.topology());
  const std::vector<Transfer> wanted = transfers(system.ranks() * copies);
  std::vector<PricedTransfer> before;
  for (const Transfer& t : wanted) {
    before.push_back(whole.price(t));
    if (before.back().bottleneck) links.insert(*before.back().bottleneck);
  }
  for (const BundleId link : links) {
    const std::vector<LinkFault> dead = {{link, 0}};
    const FlowModel broken(system, copies, "auto", "auto", dead);
    for (std::size_t i = 0; i < wanted.size(); ++i) {
      const PricedTransfer after = broken.price(wanted[i]);
      EXPECT_GE(after.isolated_time.base(), before[i].isolated_time.base() * (1 - kRounding))
          << name << " x " << copies << ", " << wanted[i].name << " of " << wanted[i].bytes.base()
          << " B without " << whole.topology().bundle_name(link) << ": " << before[i].algorithm
          << ' ' << before[i].protocol << ", then " << after.algorithm << ' ' << after.protocol;
    }
  }
}

TEST(DeadLinks, MakeNoTransferFasterInAnySystem) {
  for (const std::string& name : config::default_library().names("systems")) {
    const SystemConfig system = shipped(name);
    if (system.ranks() < 2 || system.ranks() > kMostRanks) continue;
    expect_no_gain(name, 1);
  }
}

TEST(DeadLinks, MakeNoTransferFasterBetweenSystems) {
  for (const char* name : {"dgx_h100", "dgx_a100", "mi300x_platform", "gaudi3_platform", "frontier",
                           "h100_pcie_8", "trn2_48xlarge", "dgx_1", "el_capitan"})
    expect_no_gain(name, 2);
}

}  // namespace
}  // namespace orrery::dead_links_test
