// SPDX-License-Identifier: Apache-2.0
#include "validation/checks/serving_validation.h"

#include <gtest/gtest.h>

namespace orrery::serving_targets_test {
namespace {

ServingComparison of(const std::string& model, bool experts, double measured, double predicted) {
  ServingComparison c;
  c.row.model = model;
  c.row.version = "1.2.0";
  c.row.image = "image=a/b";
  c.row.tpot_ms = measured;
  c.row.ttft_ms = 100;
  c.ttft_ms = 110;
  c.tpot_ms = predicted;
  c.experts = experts;
  return c;
}

TEST(ServingTargets, DenseModelsAreJudgedTogetherAndModelsOfExpertsEach) {
  std::vector<ServingComparison> rows = {of("a/Dense", false, 10, 11), of("a/Other", false, 10, 9),
                                         of("b/Sparse", true, 10, 12)};
  rows[1].row.version = "";  // counts: dense models are known by themselves
  rows.push_back(of("b/Sparse", true, 10, 20));
  rows.back().row.version = "";
  rows.push_back(of("b/Sparse", true, 10, 20));
  rows.back().reason = "no prediction";
  const std::vector<ServingTarget> targets = serving_targets(rows);
  ASSERT_EQ(targets.size(), 3);
  EXPECT_EQ(targets[0].name, "dense models");
  EXPECT_EQ(targets[0].tpot.count, 2);
  EXPECT_NEAR(targets[0].tpot.mape, 0.1, 1e-9);
  EXPECT_NEAR(targets[0].ttft.median, 0.1, 1e-9);
  EXPECT_EQ(targets[1].tpot.count, 1);
  EXPECT_NEAR(targets[1].tpot.mape, 0.2, 1e-9);
  EXPECT_EQ(targets[2].name, "  b/Sparse");
}

TEST(ServingTargets, KeysOfR1ThatSplitAreLeftOut) {
  const char* r1 = "deepseek-ai/DeepSeek-R1";
  std::vector<ServingComparison> rows = {of(r1, true, 10, 10), of(r1, true, 11.5, 10),
                                         of(r1, true, 10, 12), of(r1, true, 10.9, 12)};
  for (int i : {2, 3}) rows[static_cast<std::size_t>(i)].row.concurrency = 64;
  const std::vector<ServingTarget> targets = serving_targets(rows);
  ASSERT_FALSE(targets.empty());
  EXPECT_EQ(targets[0].tpot.count, 2);
  // Other models may differ as they like.
  for (ServingComparison& c : rows) c.row.model = "b/Sparse";
  EXPECT_EQ(serving_targets(rows)[0].tpot.count, 4);
}

TEST(ServingTargets, ATimeIsInsideItsIntervalWithTheEnds) {
  std::vector<ServingComparison> rows(4, of("a/Dense", false, 10, 11));
  rows[0].tpot_interval = {10, 12};
  rows[1].tpot_interval = {10.1, 20.2};
  rows[2].tpot_interval = {5, 9.9};
  rows[0].ttft_interval = {50, 100};
  const ServingTarget target = serving_targets(rows)[0];
  EXPECT_EQ(target.tpot_coverage.all, 3);
  EXPECT_EQ(target.tpot_coverage.inside, 1);
  EXPECT_NEAR(target.tpot_coverage.width, 9.9 / 5, 1e-9);
  EXPECT_EQ(target.ttft_coverage.inside, 1);
  EXPECT_EQ(target.ttft_coverage.all, 1);
}

}  // namespace
}  // namespace orrery::serving_targets_test
