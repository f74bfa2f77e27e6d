// SPDX-License-Identifier: Apache-2.0
// What links carried, in the results of experiments.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <sstream>

#include "sim/app/experiments/core/link_use.h"
#include "sim/app/experiments/core/simulate.h"

namespace orrery::link_use_test {
namespace {

RunRecord collective(const std::string& system, const std::vector<std::string>& overrides) {
  config::Diagnostics diagnostics;
  std::vector<std::string> all = {"system=" + system, "record=links"};
  all.insert(all.end(), overrides.begin(), overrides.end());
  return simulate(load_experiment(ORRERY_SOURCE_DIR "/tests/golden/all_reduce_h100.yaml", all,
                                  config::Library(ORRERY_SOURCE_DIR "/configs")));
}

const LinkUse& find(const std::vector<LinkUse>& uses, const std::string& name) {
  const auto found =
      std::find_if(uses.begin(), uses.end(), [&](const LinkUse& use) { return use.name == name; });
  if (found == uses.end()) throw std::out_of_range(name);
  return *found;
}

constexpr double kBytes = 1 << 30;

TEST(LinkUse, OfARingIsItsPayloadWhateverTheProtocolTakes) {
  for (const char* protocol : {"ll", "ll128", "simple"}) {
    const RunRecord record = collective(
        "dgx_h100", {"nodes=1", "collective.bytes=1 GiB", "collective.ranks=8",
                     "collective.algorithm=ring", std::string("collective.protocol=") + protocol});
    ASSERT_EQ(record.links.size(), 16U) << protocol;
    for (const LinkUse& use : record.links) {
      EXPECT_NEAR(use.bytes / (2 * 7.0 / 8 * kBytes), 1, 1e-12) << use.name;
      EXPECT_GT(use.busy_share, 0.8) << use.name;
      EXPECT_LE(use.busy_share, 1) << use.name;
    }
    const LinkUse& up = find(record.link_classes, "accelerator->nvswitches");
    EXPECT_EQ(up.links, 8U * 18);
    EXPECT_NEAR(up.bytes / (14 * kBytes), 1, 1e-12);
  }
}

TEST(LinkUse, OfALinkIsItsWireTimeOverTheRun) {
  // A ring of 16: a start of 3.75 us and a message, 30 steps of 1.9 us, then 30/16 of the buffer at
  // 80 % of 150 GB/s.
  const RunRecord record = collective(
      "dgx_2",
      {"nodes=1", "collective.bytes=1 GiB", "collective.ranks=16", "collective.algorithm=ring"});
  const double busy = 30.0 / 16 * kBytes / 120e9;
  const LinkUse& up = find(record.link_classes, "accelerator->nvswitches");
  EXPECT_NEAR(up.busy_share, busy / (busy + 3.75e-6 + 31 * 1.9e-6), 1e-9);
  EXPECT_NEAR(up.peak_share, up.busy_share, 1e-12);
  // Two messages of a lap cross between the boards, over 48 links.
  const LinkUse& trunks = find(record.link_classes, "board->board");
  EXPECT_EQ(trunks.links, 2U * 48);
  EXPECT_NEAR(trunks.bytes / (2 * 30.0 / 16 * kBytes), 1, 1e-12);
  EXPECT_NEAR(trunks.peak_share / up.busy_share, 6.0 / 48, 1e-9);
}

TEST(LinkUse, OfSomeRanksLeavesTheOtherLinksIdle) {
  const RunRecord record = collective("dgx_2", {"nodes=1", "collective.bytes=1 GiB",
                                                "collective.ranks=4", "collective.algorithm=ring"});
  EXPECT_EQ(record.links.size(), 8U);
  const LinkUse& up = find(record.link_classes, "accelerator->nvswitches");
  EXPECT_NEAR(up.busy_share, up.peak_share / 4, 1e-12);
  EXPECT_EQ(find(record.link_classes, "board->board").bytes, 0);
}

TEST(LinkUse, IsATableByClass) {
  RunRecord record;
  EXPECT_FALSE(link_use_table(record));
  record.link_classes = {{"accelerator->leaf", 8, 2e9, 0.25, 0.5}};
  EXPECT_THAT(link_use_table(record)->rows(),
              testing::ElementsAre(
                  testing::ElementsAre("accelerator->leaf", "8", "2.00 GB", "25.0 %", "50.0 %")));
}

}  // namespace
}  // namespace orrery::link_use_test
