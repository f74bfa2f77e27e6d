// SPDX-License-Identifier: Apache-2.0
#include "validation/calibration/operator_kernels.h"

#include <gtest/gtest.h>

#include "validation/calibration/routing.h"

namespace orrery::operator_kernels_test {
namespace {

OperatorRow gemm_row(const std::string& precision) {
  OperatorRow row;
  row.precision = precision;
  row.m = 16;
  row.n = 32;
  row.k = 64;
  return row;
}

OperatorRow attention_row() {
  OperatorRow row;
  row.precision = "bf16";
  row.kv_precision = "bf16";
  row.batch = 2;
  row.heads = 8;
  row.kv_heads = 2;
  row.head_dim = 128;
  return row;
}

OperatorRow moe_row(const std::string& distribution) {
  OperatorRow row;
  row.precision = "bf16";
  row.distribution = distribution;
  row.tokens = 1024;
  row.hidden = 4096;
  row.expert_ffn = 1536;
  row.top_k = 8;
  row.experts = 128;
  row.moe_tp = 2;
  row.moe_ep = 4;
  return row;
}

TEST(OperatorKernels, AGemmReadsItsOperandsAndWritesItsResultOnce) {
  const auto kernels =
      operator_kernels(OperatorTableKind::kGemm, gemm_row("bf16"), Precision::kBf16);
  ASSERT_EQ(kernels.size(), 1U);
  EXPECT_EQ(kernels[0].matrix_flops.base(), 2.0 * 16 * 32 * 64);
  EXPECT_EQ(kernels[0].read.base(), 2.0 * (16 * 64 + 64 * 32));
  EXPECT_EQ(kernels[0].written.base(), 2.0 * 16 * 32);
}

TEST(OperatorKernels, ANarrowGemmQuantisesItsInputFirst) {
  const auto kernels = operator_kernels(OperatorTableKind::kGemm, gemm_row("fp8"), Precision::kFp8);
  ASSERT_EQ(kernels.size(), 2U);
  EXPECT_EQ(kernels[0].kind, KernelClass::kQuantize);
  EXPECT_EQ(kernels[0].read.base(), 2.0 * 16 * 64);
  EXPECT_EQ(kernels[0].written.base(), 1.0 * 16 * 64);
  EXPECT_EQ(kernels[1].read.base(), 1.0 * (16 * 64 + 64 * 32));
}

TEST(OperatorKernels, CausalPrefillComputesHalfTheSquare) {
  OperatorRow row = attention_row();
  row.q_len = 100;
  const auto kernels =
      operator_kernels(OperatorTableKind::kAttentionPrefill, row, Precision::kBf16);
  ASSERT_EQ(kernels.size(), 1U);
  // 2 sequences x 8 heads x 100 x 101 / 2 pairs, 2 products of 128 columns each.
  EXPECT_EQ(kernels[0].matrix_flops.base(), 2.0 * 8 * 5050 * 2 * 2 * 128);
  // Queries of 8 heads, keys and values of 2.
  EXPECT_EQ(kernels[0].read.base(), 2.0 * 2 * 100 * (8 * 128 + 2 * 2 * 128));
}

TEST(OperatorKernels, AWindowBoundsWhatEachQuerySees) {
  OperatorRow row = attention_row();
  row.q_len = 100;
  row.window = 10;
  const auto kernels =
      operator_kernels(OperatorTableKind::kAttentionPrefill, row, Precision::kBf16);
  // Sum of min(i, 10) for i = 1 .. 100: 55 + 90 x 10 = 955.
  EXPECT_EQ(kernels[0].matrix_flops.base(), 2.0 * 8 * 955 * 2 * 2 * 128);
}

TEST(OperatorKernels, DecodeReadsTheWholeCacheInItsOwnFormat) {
  OperatorRow row = attention_row();
  row.kv_len = 1000;
  row.kv_precision = "fp8";
  const auto kernels = operator_kernels(OperatorTableKind::kAttentionDecode, row, Precision::kBf16);
  // 2 sequences x 1000 tokens x 2 heads x 256 elements of a byte, and the queries in bf16.
  EXPECT_EQ(kernels[0].read.base(), 2.0 * 1000 * 2 * 256 + 2.0 * 2 * 8 * 128);
}

TEST(OperatorKernels, AbsorbedLatentAttentionReadsOneLatentForAllHeads) {
  OperatorRow row;
  row.precision = "bf16";
  row.kv_precision = "bf16";
  row.batch = 4;
  row.heads = 16;
  row.kv_len = 500;
  const auto kernels = operator_kernels(OperatorTableKind::kMlaDecode, row, Precision::kBf16);
  EXPECT_EQ(kernels[0].read.base(), 4.0 * 500 * 576 * 2 + 4.0 * 16 * 576 * 2);
  EXPECT_EQ(kernels[0].matrix_flops.base(), 4.0 * 16 * 500 * 2 * (576 + 512));
}

TEST(OperatorKernels, PrefillOverAnFp8CacheRunsInFp8) {
  OperatorRow row = attention_row();
  row.kv_precision = "fp8";
  EXPECT_EQ(row_precision(OperatorTableKind::kAttentionPrefill, row), Precision::kFp8);
  EXPECT_EQ(row_precision(OperatorTableKind::kAttentionDecode, row), Precision::kBf16);
}

TEST(OperatorKernels, AFormatNobodyModelsHasNoPrecision) {
  EXPECT_EQ(row_precision(OperatorTableKind::kMoe, gemm_row("w2a16")), std::nullopt);
}

TEST(OperatorKernels, NarrowWeightsRunInThePrecisionOfTheInputs) {
  OperatorRow row = moe_row("balanced");
  const auto bytes = [](const std::vector<Kernel>& kernels) {
    double read = 0;
    for (const Kernel& kernel : kernels)
      if (kernel.kind == KernelClass::kGroupedGemm) read += kernel.read.base();
    return read;
  };
  const auto wide = operator_kernels(OperatorTableKind::kMoe, row, Precision::kFp8);
  row.precision = "w4a8_mxfp4_mxfp8";
  ASSERT_EQ(row_precision(OperatorTableKind::kMoe, row), Precision::kFp8);
  const auto narrow = operator_kernels(OperatorTableKind::kMoe, row, Precision::kFp8);
  // Half a byte less for each of the three matrices of 4096 x 768 of every expert that has rows.
  const double experts = heaviest_rank(row).active;
  EXPECT_NEAR(bytes(wide) - bytes(narrow), 0.5 * experts * 3 * 4096 * 768, 1);
  EXPECT_EQ(row_weights(row).bits, 4);
  row.precision = "w4a16_mxfp4";
  EXPECT_EQ(row_precision(OperatorTableKind::kMoe, row), Precision::kBf16);
}

TEST(OperatorKernels, ExpertsOfARankComputeItsShareOfTheTokens) {
  const auto kernels =
      operator_kernels(OperatorTableKind::kMoe, moe_row("balanced"), Precision::kBf16);
  double flops = 0;
  for (const Kernel& kernel : kernels) flops += kernel.matrix_flops.base();
  // 1024 x 8 / 4 rows through three matrices of 4096 x 768.
  EXPECT_EQ(flops, 2.0 * 2048 * 3 * 4096 * 768);
}

TEST(OperatorKernels, SkewedExpertsComputeTheRowsOfTheHeaviestRank) {
  const OperatorRow row = moe_row("power_law_1.2");
  const ExpertLoad load = heaviest_rank(row);
  double flops = 0, up_weights = 0;
  for (const Kernel& kernel : operator_kernels(OperatorTableKind::kMoe, row, Precision::kBf16)) {
    flops += kernel.matrix_flops.base();
    if (kernel.name == "expert up") up_weights = kernel.read.base() - load.rows * 4096 * 2;
  }
  EXPECT_NEAR(flops / (2 * load.rows * 3 * 4096 * 768), 1, 1e-9);
  EXPECT_NEAR(up_weights / (load.active * 2 * 768 * 4096 * 2), 1, 1e-9);
}

TEST(OperatorKernels, AMixtureOfExpertsIsWhatALayerRuns) {
  std::vector<std::string> names;
  double copies = 0;
  for (const Kernel& kernel :
       operator_kernels(OperatorTableKind::kMoe, moe_row("balanced"), Precision::kFp8)) {
    names.push_back(kernel.name);
    copies += kernel.load.copies;
  }
  EXPECT_EQ(names, (std::vector<std::string>{"expert choice", "permute", "expert up",
                                             "expert activation", "expert down", "combine add"}));
  EXPECT_EQ(copies, 1024 * 8);  // sorted once
}

double expert_flops(const OperatorRow& row) {
  double flops = 0;
  for (const Kernel& kernel : operator_kernels(OperatorTableKind::kMoe, row, Precision::kBf16))
    flops += kernel.matrix_flops.base();
  return flops;
}

TEST(OperatorKernels, ExpertsOfTwoMatricesAreStatedOrKnownByTheirModel) {
  OperatorRow row = moe_row("balanced");
  const double gated = expert_flops(row);
  row.matrices = 2;
  EXPECT_NEAR(expert_flops(row) / gated, 2.0 / 3, 1e-12);
  row.hidden = 4096;  // Nemotron 3 Super
  row.expert_ffn = 2688;
  row.matrices = 3;
  const double stated = expert_flops(row);
  row.matrices = 0;
  EXPECT_NEAR(expert_flops(row) / stated, 2.0 / 3, 1e-12);
}

TEST(OperatorKernels, ChoosingManyExpertsTakesMoreKernels) {
  OperatorRow row = moe_row("balanced");
  const std::size_t fused = operator_kernels(OperatorTableKind::kMoe, row, Precision::kBf16).size();
  row.top_k = 22;
  EXPECT_EQ(operator_kernels(OperatorTableKind::kMoe, row, Precision::kBf16).size(), fused + 4);
}

TEST(OperatorKernels, CopiesAreSortedByTheExpertsOfTheirRank) {
  for (const Kernel& kernel :
       operator_kernels(OperatorTableKind::kMoe, moe_row("balanced"), Precision::kBf16))
    EXPECT_EQ(kernel.load.choices, kernel.load.copies > 0 ? 1024 * 128 / 4 : 0) << kernel.name;
}

TEST(Routing, BalancedExpertsGetEqualShares) {
  const ExpertLoad load = heaviest_rank(moe_row("balanced"));
  EXPECT_EQ(load.rows, 1024 * 8 / 4);
  EXPECT_EQ(load.active, 32);
}

TEST(Routing, FewTokensReachFewExperts) {
  OperatorRow row = moe_row("balanced");
  row.tokens = 1;
  EXPECT_EQ(heaviest_rank(row).active, 2);  // 8 copies over 4 ranks
}

TEST(Routing, APowerLawLoadsTheHeaviestRankMore) {
  const double even = heaviest_rank(moe_row("balanced")).rows;
  const double mild = heaviest_rank(moe_row("power_law_1.01")).rows;
  EXPECT_GT(mild, even);
  EXPECT_LE(mild, 1024 * 8);  // never more than all copies
  EXPECT_GT(heaviest_rank(moe_row("power_law_1.2")).rows, even);
}

TEST(Routing, FewPowerLawTokensSpreadOverExpertsAndRanks) {
  // The collector deals what rounding left over out to the emptiest expert of each rank in turn.
  OperatorRow row = moe_row("power_law_1.2");
  row.tokens = 1;
  row.moe_ep = 1;
  EXPECT_EQ(heaviest_rank(row).active, 8);
  row.moe_ep = 8;
  EXPECT_NEAR(heaviest_rank(row).rows, 1, 0.5);
}

TEST(Routing, AnExpertTakesATokenOnce) {
  OperatorRow row = moe_row("power_law_1.01");
  row.experts = 8;
  row.top_k = 2;
  row.moe_ep = 1;
  row.tokens = 64;
  const ExpertLoad load = heaviest_rank(row);
  EXPECT_NEAR(load.rows, 128, 1e-9);
  EXPECT_EQ(load.active, 8);
  EXPECT_LE(load.blocks[3], 8);  // none above 64 rows
  EXPECT_GT(load.blocks[0], 8);  // but some above 16
}

TEST(Routing, BlocksHoldTheRows) {
  for (const char* distribution : {"balanced", "power_law_1.01", "power_law_1.2"}) {
    const ExpertLoad load = heaviest_rank(moe_row(distribution));
    for (std::size_t i = 0; i < load.blocks.size(); ++i) {
      EXPECT_GE(load.blocks[i] * ExpertLoad::kHeights[i], load.rows * (1 - 1e-12));
      EXPECT_GE(load.blocks[i], load.active * (1 - 1e-12));
    }
  }
}

TEST(Routing, OneRankHoldsEverything) {
  OperatorRow row = moe_row("power_law_1.2");
  row.moe_ep = 1;
  EXPECT_NEAR(heaviest_rank(row).rows, 1024 * 8, 1e-6);
}

TEST(ShapeGroup, LoadIsNoPartOfIt) {
  OperatorRow a = gemm_row("bf16"), b = gemm_row("fp8");
  b.m = 4096;
  EXPECT_EQ(shape_group(OperatorTableKind::kGemm, a), shape_group(OperatorTableKind::kGemm, b));
  b.n = 33;
  EXPECT_NE(shape_group(OperatorTableKind::kGemm, a), shape_group(OperatorTableKind::kGemm, b));
}

TEST(ShapeGroup, AQuarterIsHeldOut) {
  int held_out = 0;
  for (int n = 1; n <= 4000; ++n) {
    OperatorRow row = gemm_row("bf16");
    row.n = n;
    held_out += is_held_out(shape_group(OperatorTableKind::kGemm, row)) ? 1 : 0;
  }
  EXPECT_NEAR(held_out, 1000, 4 * 27.4);  // sqrt(4000 x 1/4 x 3/4) = 27.4
}

}  // namespace
}  // namespace orrery::operator_kernels_test
