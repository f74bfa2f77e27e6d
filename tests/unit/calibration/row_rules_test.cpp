// SPDX-License-Identifier: Apache-2.0
#include "validation/calibration/row_rules.h"

#include <gtest/gtest.h>

#include "tests/unit/machine/shipped_library.h"
#include "validation/calibration/operator_kernels.h"

namespace orrery::row_rules_test {
namespace {

std::vector<RowRule> rules_of(OperatorTable table, const std::string& name) {
  const AcceleratorConfig on = shipped_accelerator(name);
  table.systems = {name};
  return row_rules(table, [&](const std::string&) { return &on; });
}

RowRule rule_of(OperatorTableKind kind, const OperatorRow& row, const std::string& name) {
  OperatorTable table;
  table.kind = kind;
  table.rows = {row};
  return rules_of(table, name).front();
}

/// 64 sequences of 8,192 tokens, 8 heads of 128 keys and values: 2.15 GB, of which an A100 moves
/// 2.04 in a ms.
OperatorRow decode_row(double latency_us) {
  OperatorRow row;
  row.precision = row.kv_precision = "bf16";
  row.batch = 64;
  row.kv_len = 8192;
  row.heads = 64;
  row.kv_heads = 8;
  row.head_dim = 128;
  row.latency_us = latency_us;
  return row;
}

TEST(RowRules, ARowThatBeatsTheMemoryIsLeftOut) {
  // 2.15 GB less the 42 MB that the L2 may hold, at 2,039 GB/s: 1,033 us.
  EXPECT_EQ(rule_of(OperatorTableKind::kAttentionDecode, decode_row(1020), "a100_sxm"),
            RowRule::kMemory);
  EXPECT_EQ(rule_of(OperatorTableKind::kAttentionDecode, decode_row(1050), "a100_sxm"),
            RowRule::kKept);
}

/// Twenty rows that keep to the memory, and some that do not.
OperatorTable decode_table(std::size_t broken) {
  OperatorTable table;
  table.kind = OperatorTableKind::kAttentionDecode;
  table.rows.assign(20, decode_row(1100));
  for (std::size_t i = 0; i < broken; ++i) table.rows.push_back(decode_row(900));
  return table;
}

TEST(RowRules, OneBrokenRowInTwentyLeavesTheOthers) {
  EXPECT_EQ(rules_of(decode_table(1), "a100_sxm").front(), RowRule::kKept);
  EXPECT_EQ(rules_of(decode_table(2), "a100_sxm").front(), RowRule::kTable);
}

TEST(RowRules, HeadsWithKeysOfTheirOwnDoNotStandOrFallWithGroupedOnes) {
  OperatorTable table = decode_table(5);
  OperatorRow own = decode_row(1100);
  own.heads = own.kv_heads;
  table.rows.push_back(own);
  EXPECT_EQ(rules_of(table, "a100_sxm").back(), RowRule::kKept);
}

TEST(RowRules, WhatTheL2HoldsMayBeThereAlready) {
  OperatorRow row = decode_row(1);
  row.batch = 1;  // 34 MB
  EXPECT_EQ(rule_of(OperatorTableKind::kAttentionDecode, row, "a100_sxm"), RowRule::kKept);
}

TEST(RowRules, ARowThatBeatsThePeakOfItsPrecisionIsLeftOut) {
  const AcceleratorConfig h100 = shipped_accelerator("h100_sxm");
  OperatorRow row;
  row.precision = "bf16";
  row.m = row.n = row.k = 8192;
  const double boost =
      h100.compute.boost_clock ? h100.compute.boost_clock->value / h100.compute.clock.value : 1;
  const double peak_us = 2.0 * 8192 * 8192 * 8192 / 989.4e6 / boost;
  row.latency_us = 0.99 * peak_us;
  EXPECT_EQ(rule_of(OperatorTableKind::kGemm, row, "h100_sxm"), RowRule::kPeak);
  row.latency_us = 1.01 * peak_us;
  EXPECT_EQ(rule_of(OperatorTableKind::kGemm, row, "h100_sxm"), RowRule::kKept);
}

TEST(RowRules, WeightsThatRotateComeFromMemory) {
  // 58.7 MB of which five copies are three times the L2 of 96 MB; 68 us at 864 GB/s.
  OperatorRow row;
  row.precision = "bf16";
  row.m = 8;
  row.n = 7168;
  row.k = 4096;
  row.latency_us = 67;
  EXPECT_EQ(rule_of(OperatorTableKind::kGemm, row, "l40s"), RowRule::kResident);
  row.latency_us = 69;
  EXPECT_EQ(rule_of(OperatorTableKind::kGemm, row, "l40s"), RowRule::kKept);
  row.n = 2048;  // five copies of 16.8 MB may stay
  row.latency_us = 10;
  EXPECT_EQ(rule_of(OperatorTableKind::kGemm, row, "l40s"), RowRule::kKept);
}

OperatorRow expert_row(std::int64_t ep, std::int64_t tokens, double latency_us) {
  OperatorRow row;
  row.precision = "bf16";
  row.distribution = "balanced";
  row.tokens = tokens;
  row.hidden = 4096;
  row.expert_ffn = 1536;
  row.top_k = 8;
  row.experts = 128;
  row.moe_tp = 1;
  row.moe_ep = ep;
  row.latency_us = latency_us;
  return row;
}

/// Two ranks of a model over tokens: 32 experts in 2,000 us, 16 in what is given.
OperatorTable experts(const std::vector<double>& of_sixteen) {
  OperatorTable table;
  table.kind = OperatorTableKind::kMoe;
  for (std::size_t i = 0; i < of_sixteen.size(); ++i) {
    const std::int64_t tokens = std::int64_t{1} << i;
    table.rows.push_back(expert_row(4, tokens, 2000));
    table.rows.push_back(expert_row(8, tokens, of_sixteen[i]));
  }
  return table;
}

RowRule rule_of(const OperatorTable& table, std::size_t row) {
  return rules_of(table, "h200_sxm").at(row);
}

TEST(RowRules, FewerExpertsThatTakeLongerFellBack) {
  const OperatorTable table = experts({1000, 1050, 2700, 1100, 1200});
  EXPECT_EQ(rule_of(table, 5), RowRule::kFellBack);
  EXPECT_EQ(rule_of(table, 3), RowRule::kKept);
  EXPECT_EQ(rule_of(table, 4), RowRule::kKept);  // the rank that it is held against
}

TEST(RowRules, ARankIsHeldAgainstRanksOfItsOwnEngine) {
  OperatorTable table = experts({1000, 1050, 2700, 1100, 1200});
  table.rows.at(5).engine = 1;
  EXPECT_EQ(rule_of(table, 5), RowRule::kKept);
}

TEST(RowRules, ACurveOfWhichMostRowsFellBackIsLeftOutWhole) {
  const OperatorTable table = experts({4000, 4100, 2200, 4300, 4500});
  EXPECT_EQ(rule_of(table, 5), RowRule::kFellBack);  // 2,200 alone would pass
}

TEST(RowRules, AHeavyRankIsNoFallback) {
  // A power law is five times slower than balance where the heaviest rank has that much more.
  OperatorTable table = experts({1000, 1000, 1000, 1000, 1000});
  for (const std::int64_t ep : {4, 8}) {
    OperatorRow row = expert_row(ep, 4, ep == 4 ? 5200 : 5000);
    row.distribution = "power_law_1.2";
    table.rows.push_back(row);
  }
  EXPECT_EQ(rule_of(table, table.rows.size() - 1), RowRule::kKept);
}

}  // namespace
}  // namespace orrery::row_rules_test
