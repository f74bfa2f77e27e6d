// SPDX-License-Identifier: Apache-2.0
#include "validation/calibration/block_kernels.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "models/kernels/calibrated_model.h"
#include "sim/config/diagnostics.h"
#include "tests/unit/machine/shipped_library.h"
#include "validation/calibration/operator_kernels.h"

namespace orrery::block_kernels_test {
namespace {

using ::testing::HasSubstr;

OperatorRow block(const std::string& model, std::int64_t heads) {
  OperatorRow row;
  row.model = model;
  row.gemm_precision = "fp8_block";
  row.precision = row.kv_precision = "bf16";
  row.batch = 8;
  row.kv_len = 1000;
  row.heads = heads;
  return row;
}

std::vector<Kernel> decode(const OperatorRow& row, const RowSoftware& software = {}) {
  return block_kernels(OperatorTableKind::kBlockDecode, row, Precision::kFp8Block, software);
}

const Kernel& named(const std::vector<Kernel>& kernels, const std::string& name) {
  const auto at = std::ranges::find(kernels, name, &Kernel::name);
  if (at == kernels.end()) throw std::out_of_range("no kernel is called " + name);
  return *at;
}

bool has(const std::vector<Kernel>& kernels, const std::string& name) {
  return std::ranges::find(kernels, name, &Kernel::name) != kernels.end();
}

// DeepSeek-V3: 7,168 columns, latents of 1,536 and 512 + 64; 16 of 128 heads with 128 columns of
// values each.
TEST(BlockKernels, ABlockIsTheMixerOfOneRankBetweenNormAndAllReduce) {
  const std::vector<Kernel> kernels = decode(block("DeepSeek-V3", 16));
  EXPECT_EQ(named(kernels, "latent down").matrix_flops.base(), 2.0 * 8 * 7168 * (1536 + 576));
  EXPECT_EQ(named(kernels, "attention output").matrix_flops.base(), 2.0 * 8 * (16 * 128) * 7168);
  EXPECT_EQ(named(kernels, "attention").n, 1000);
  EXPECT_FALSE(has(kernels, "attention norm"));
  EXPECT_EQ(kernels.front().name, "latent down");
  EXPECT_EQ(kernels.back().name, "attention output");
}

TEST(BlockKernels, ItsHeadsSayHowManyRanksShareIt) {
  const Kernel half = named(decode(block("DeepSeek-V3", 64)), "query up");
  const Kernel whole = named(decode(block("DeepSeek-V3", 128)), "query up");
  EXPECT_EQ(2 * half.n, whole.n);
}

TEST(BlockKernels, APromptSeesItsPrefix) {
  OperatorRow row = block("DeepSeek-V3", 128);
  row.q_len = 100;
  row.kv_prefix_len = 50;
  const std::vector<Kernel> kernels =
      block_kernels(OperatorTableKind::kBlockPrefill, row, Precision::kBf16, {});
  EXPECT_EQ(named(kernels, "attention").n, 150);
  EXPECT_EQ(named(kernels, "latent down").m, 8 * 100);
}

TEST(BlockKernels, AnEngineThatQuantisesApartHasAKernelForEachInput) {
  RowSoftware apart;
  apart.kernels.set("block_quant_fusion", false);
  const std::vector<Kernel> fused = decode(block("DeepSeek-V3", 16));
  const std::vector<Kernel> kernels = decode(block("DeepSeek-V3", 16), apart);
  EXPECT_EQ(kernels.size(), fused.size() + 3);  // of latents, queries and the output
  EXPECT_TRUE(has(kernels, "query up input quantisation"));
  // A scale a tensor comes with what was before.
  EXPECT_EQ(block_kernels(OperatorTableKind::kBlockDecode, block("DeepSeek-V3", 16),
                          Precision::kFp8, apart)
                .size(),
            fused.size());
}

TEST(BlockKernels, LayersOfDeepSeekV4AreToldByTheTokensOfAnEntry) {
  OperatorRow row = block("DeepSeek-V4-Flash", 32);
  row.compress_ratio = 4;
  EXPECT_TRUE(has(decode(row), "index scores"));
  row.compress_ratio = 128;
  EXPECT_FALSE(has(decode(row), "index scores"));
  row.compress_ratio = 5;
  EXPECT_THAT(block_fault(row), HasSubstr("no layer of 'DeepSeek-V4-Flash' is like that"));
}

TEST(BlockKernels, LayersThatShareASelectionAreToldByTheKernel) {
  OperatorRow row = block("GLM-5.2", 16);
  EXPECT_TRUE(has(decode(row), "index scores"));
  row.kernel = "sglang_dsa_skip_indexer_fa3";
  EXPECT_FALSE(has(decode(row), "index scores"));
}

TEST(BlockKernels, BlocksThatCannotBeBuiltHaveAReason) {
  EXPECT_EQ(block_fault(block("GLM-5-NVFP4", 16)), "");  // the format of its weights is the row's
  EXPECT_THAT(block_fault(block("Unheard-Of", 16)), HasSubstr("no model is called 'Unheard-Of'"));
  EXPECT_THAT(block_fault(block("GLM-5", 128)), HasSubstr("128 heads of a rank"));
  EXPECT_EQ(row_precision(OperatorTableKind::kBlockDecode, block("Unheard-Of", 16)), std::nullopt);
  EXPECT_EQ(row_precision(OperatorTableKind::kBlockDecode, block("GLM-5", 16)),
            Precision::kFp8Block);
}

TEST(BlockKernels, NoKernelIsToldByATableOfBlocks) {
  OperatorTable table;
  table.kind = OperatorTableKind::kBlockDecode;
  table.path = "blocks.csv";
  EXPECT_THROW(measured_kernels(table, shipped_accelerator("h200_sxm"), CalibratedModel()),
               config::ConfigError);
}

OperatorRow part(const std::string& operation) {
  OperatorRow row = block("GLM-5", 64);
  row.operation = operation;
  row.batch = 2;
  row.q_len = 100;
  row.kv_prefix_len = 5000;
  return row;
}

// 32 index heads of 128 columns; 100 tokens see 5,050.5 of their 5,100 keys on average.
TEST(BlockKernels, ScoresOverPagesHaveABlockForEachTokenOthersForSeveral) {
  const Kernel prompts = sparse_part(part("glm5_mqa_logits_module")).front();
  const Kernel pages = sparse_part(part("paged_mqa_logits")).front();
  EXPECT_EQ(prompts.batch, 2);
  EXPECT_EQ(prompts.m, 100 * 32);
  EXPECT_EQ(pages.batch, 200);
  EXPECT_EQ(pages.m, 32);
  EXPECT_EQ(pages.matrix_flops, prompts.matrix_flops);
  EXPECT_EQ(prompts.precision, Precision::kFp8);
  EXPECT_NEAR(prompts.matrix_flops.base(), 2.0 * 200 * 5050.5 * 32 * 128, 1);
}

TEST(BlockKernels, AttentionToAChoiceIsOneKernelOfAllItsPlaces) {
  const std::vector<Kernel> kernels = sparse_part(part("glm5_dsa_attn_module"));
  ASSERT_EQ(kernels.size(), 1U);
  EXPECT_EQ(kernels.front().attention.places, 2048);
  EXPECT_EQ(kernels.front().matrix_flops.base(), 2.0 * 200 * 2048 * 64 * (576 + 512));
}

TEST(BlockKernels, FewTokensOfAPromptAreNotScoredByTheKernelOfPrompts) {
  OperatorRow row = part("glm5_mqa_logits_module");
  row.q_len = 3;
  EXPECT_THAT(block_fault(row), HasSubstr("engines score those over pages"));
  row.operation = "paged_mqa_logits";
  EXPECT_EQ(block_fault(row), "");
}

}  // namespace
}  // namespace orrery::block_kernels_test
