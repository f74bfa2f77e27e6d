// SPDX-License-Identifier: Apache-2.0
// Prices on links that are not whole.
#include <gtest/gtest.h>

#include <vector>

#include "models/topologies/link_states.h"
#include "models/transfers/flow_model.h"
#include "tests/unit/models/transfers/flow_checks.h"
#include "tests/unit/models/transfers/test_systems.h"

namespace orrery::faulty_links_test {
namespace {

using namespace orrery::fixtures;

std::vector<LinkFault> faults(const FlowModel& whole, const std::string& pattern, double share) {
  LinkStates links(whole.topology(), whole.fabric());
  EXPECT_TRUE(links.set(pattern, share));
  return links.faults();
}

/// Time of the bytes, without the latency.
double carrying(const FlowModel& network, const Transfer& transfer) {
  const PricedTransfer priced = network.price(transfer);
  return priced.isolated_time.base() - to_seconds(priced.cost.latency).base();
}

TEST(FaultyLinks, LosingOneOf18SwitchesOfNvl72LeavesSeventeenEighteenths) {
  const FlowModel whole(nvl72(), 1);
  const FlowModel network(nvl72(), 1, "auto", "auto", faults(whole, "*nvswitch7*", 0));
  for (const TransferKind kind :
       {TransferKind::kAllReduce, TransferKind::kAllGather, TransferKind::kAllToAll}) {
    const Transfer t = transfer(kind, 900_MB, {range(0, 72)});
    EXPECT_NEAR(carrying(network, t) / carrying(whole, t), 18.0 / 17, 1e-9) << to_string(kind);
    EXPECT_EQ(network.price(t).cost.latency, whole.price(t).cost.latency);
  }
}

TEST(FaultyLinks, LosingASubPlaneOfCloudMatrixLeavesSixSevenths) {
  const FlowModel whole(cm384(), 1);
  const FlowModel network(cm384(), 1, "auto", "auto", faults(whole, "*/plane3/*", 0));
  const Transfer t = transfer(TransferKind::kAllToAll, 768_MB, {range(0, 768)});
  EXPECT_NEAR(carrying(network, t) / carrying(whole, t), 7.0 / 6, 1e-9);
}

TEST(FaultyLinks, ATransferIsPricedAsItWasTakenOrAsIsBestNow) {
  const FlowModel whole(mi300x(), 1);
  const FlowModel network(
      mi300x(), 1, "auto", "auto",
      faults(whole, "system0/node0/accelerator0->system0/node0/accelerator1", 0.1));
  const Transfer t = transfer(TransferKind::kBroadcast, 900_MB, {range(0, 8)});
  const PricedTransfer as_before = network.price_as(t, whole.price(t));
  EXPECT_EQ(as_before.algorithm, whole.price(t).algorithm);
  EXPECT_LE(network.price(t).isolated_time.base(), as_before.isolated_time.base());
  EXPECT_GT(as_before.isolated_time.base(), whole.price(t).isolated_time.base());
}

TEST(FaultyLinks, WithoutFaultsPricesAreTheSame) {
  const FlowModel whole(dgx_h100(), 4);
  const std::vector<LinkFault> none;
  const FlowModel network(dgx_h100(), 4, "auto", "auto", none);
  const Transfer t = transfer(TransferKind::kAllReduce, 900_MB, {range(0, 32)});
  EXPECT_EQ(network.price(t).isolated_time, whole.price(t).isolated_time);
  EXPECT_EQ(network.price_as(t, whole.price(t)).isolated_time, whole.price(t).isolated_time);
}

}  // namespace
}  // namespace orrery::faulty_links_test
