// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <set>
#include <tuple>
#include <vector>

#include "host/attention_shapes.h"
#include "host/gemm_shapes.h"
#include "host/names.h"

namespace orrery::measure::shapes_test {
namespace {

bool contains(const std::vector<GemmShape>& shapes, const GemmShape& shape) {
  return std::find(shapes.begin(), shapes.end(), shape) != shapes.end();
}

TEST(GemmShapes, AreAtLeastSixHundredDifferentOnes) {
  const std::vector<GemmShape> shapes = gemm_shapes(1e12);
  std::set<std::tuple<std::int64_t, std::int64_t, std::int64_t>> different;
  for (const GemmShape& shape : shapes) {
    different.emplace(shape.m, shape.n, shape.k);
    EXPECT_LE(shape.flops(), 1e12);
    EXPECT_EQ(shape.n % 16, 0);  // fp8 wants rows of whole 16 bytes
    EXPECT_EQ(shape.k % 16, 0);
  }
  EXPECT_EQ(different.size(), shapes.size());
  EXPECT_GE(shapes.size(), 600u);
}

TEST(GemmShapes, HoldDecodeAndPrefillOfRealModels) {
  const std::vector<GemmShape> shapes = gemm_shapes(9e12);
  EXPECT_TRUE(contains(shapes, {1, 1280, 8192}));      // Llama 3 70B, QKV at 8: (8192 + 2048) / 8
  EXPECT_TRUE(contains(shapes, {16384, 8192, 3584}));  // the same, down projection: 28672 / 8
  EXPECT_TRUE(contains(shapes, {64, 2112, 7168}));     // DeepSeek-V3, joint low-rank projections
  EXPECT_TRUE(contains(shapes, {8192, 8192, 8192}));
}

TEST(GemmShapes, AnyPrefixOfTheOrderSpreadsOverAllRows) {
  std::vector<GemmShape> shapes = gemm_shapes(9e12);
  shapes.resize(200);
  std::set<std::int64_t> rows;
  for (const GemmShape& shape : shapes) rows.insert(shape.m);
  EXPECT_EQ(rows.size(), gemm_rows().size());
}

TEST(GemmShapes, SteadyOnesHaveATeraflop) {
  for (const GemmShape& shape : steady_gemm_shapes()) EXPECT_GE(shape.flops(), 1e12);
}

TEST(GroupedShapes, BalancedRowsDifferByOneAtMost) {
  const std::vector<std::int64_t> rows = rows_of_experts({8, 100, Distribution::kBalanced, 1, 1});
  EXPECT_EQ(std::accumulate(rows.begin(), rows.end(), std::int64_t{0}), 100);
  EXPECT_EQ(*std::max_element(rows.begin(), rows.end()), 13);  // 100 / 8 = 12.5
  EXPECT_EQ(*std::min_element(rows.begin(), rows.end()), 12);
}

TEST(GroupedShapes, PowerLawSharesFallWithTheRank) {
  // 2^-1.2 = 0.4353: shares 0.6967 and 0.3033.
  EXPECT_EQ(rows_of_experts({2, 100, Distribution::kPowerLaw, 1, 1}),
            (std::vector<std::int64_t>{70, 30}));
  const std::vector<std::int64_t> rows = rows_of_experts({128, 64, Distribution::kPowerLaw, 1, 1});
  EXPECT_EQ(std::accumulate(rows.begin(), rows.end(), std::int64_t{0}), 64);
  EXPECT_GT(rows[0], rows[10]);
  EXPECT_EQ(rows[127], 0);  // an expert without rows
}

TEST(AttentionShapes, FlopsCountThePairsThatTheMaskLeaves) {
  // Query 0 sees 4 of 5 keys, query 1 all 5: 9 pairs, 2 products of 2 flops, 64 dims, 2 heads,
  // batch 3.
  const PrefillShape shape{3, 2, 3, {2, 1, 64}};
  EXPECT_DOUBLE_EQ(shape.flops(), 9.0 * 4 * 64 * 2 * 3);
}

TEST(AttentionShapes, SplitsCoverEveryKeyAndNoneIsEmpty) {
  for (const DecodeShape& shape : decode_shapes(8e9)) {
    const DecodeSplit split = decode_split(shape, 132, 32);
    ASSERT_EQ(split.keys_per_split % 32, 0);
    ASSERT_GE(split.splits * split.keys_per_split, shape.kv_len);
    ASSERT_LT((split.splits - 1) * split.keys_per_split, shape.kv_len);
  }
}

TEST(AttentionShapes, OneSequenceIsSplitOverTheWholeChip) {
  // 8 KV heads, 4 warps on each of 132 multiprocessors: 66 splits of 131072 keys = 1986, in tiles
  // of 32: 2016 keys, 66 splits (65.02).
  const DecodeSplit split = decode_split({1, 131072, {64, 8, 128}, 0}, 132, 32);
  EXPECT_EQ(split.head_groups, 1);
  EXPECT_EQ(split.keys_per_split, 2016);
  EXPECT_EQ(split.splits, 66);
  EXPECT_EQ(decode_split({64, 1024, {64, 8, 128}, 0}, 132, 32).splits, 1);
  EXPECT_EQ(decode_split({1, 1024, {64, 2, 128}, 0}, 132, 32).head_groups, 2);
}

TEST(AttentionShapes, PageTableIsAPermutation) {
  std::vector<std::int32_t> pages = page_table(3, 5);
  EXPECT_FALSE(std::is_sorted(pages.begin(), pages.end()));
  std::sort(pages.begin(), pages.end());
  for (int i = 0; i < 15; ++i) EXPECT_EQ(pages[static_cast<std::size_t>(i)], i);
}

TEST(CublasLtNames, AreThoseOfItsHeader) {
  EXPECT_EQ(tile_name(20), "128x128");   // CUBLASLT_MATMUL_TILE_128x128
  EXPECT_EQ(tile_name(210), "192x256");  // CUBLASLT_MATMUL_TILE_192x256
  EXPECT_EQ(tile_name(447), "128x512");  // CUBLASLT_MATMUL_TILE_128x512
  EXPECT_EQ(tile_name(634), "512x1024");
  EXPECT_EQ(tile_name(635), "635");
  EXPECT_EQ(cluster_name(3), "2x1x1");
  EXPECT_EQ(cluster_name(51), "1x15x1");
  EXPECT_EQ(cluster_name(0), "auto");
  EXPECT_EQ(stages_name(16), "64x4");
  EXPECT_EQ(stages_name(36), "128xauto");
  EXPECT_EQ(stages_name(31), "8x3");
}

}  // namespace
}  // namespace orrery::measure::shapes_test
