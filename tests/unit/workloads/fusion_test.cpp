// SPDX-License-Identifier: Apache-2.0
#include "workloads/ops/fusion.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "workloads/layers/parts/attention_kernels.h"
#include "workloads/ops/kernels.h"

namespace orrery::fusion_test {
namespace {

AttentionCore core(bool causal) {
  AttentionCore core;
  core.sequences = 2;
  core.heads = 8;
  core.kv_heads = 2;
  core.query = 100;
  core.context = 160;
  core.causal = causal;
  core.qk_dim = 64;
  core.v_dim = 32;
  return core;
}

Kernel bias(std::int64_t rows, std::int64_t width) {
  return stream("bias", KernelClass::kElementwise, rows, width, {2, 2, 1});
}

double matrix_flops(const KernelGraph& graph) {
  double sum = 0;
  for (const Kernel& kernel : kernels_of(graph)) sum += kernel.matrix_flops.base();
  return sum;
}

double vector_flops(const KernelGraph& graph) {
  double sum = 0;
  for (const Kernel& kernel : kernels_of(graph)) sum += kernel.vector_flops.base();
  return sum;
}

double moved(const KernelGraph& graph) { return traffic(kernels_of(graph)).base(); }

/// Graphs of several forms.
std::vector<KernelGraph> examples() {
  AttentionCore windowed = core(true);
  windowed.window = 30;
  KernelGraph kept = chain({gemm("up", Precision::kBf16, {64, 128, 32}), bias(64, 128)});
  kept.kept = {"result of 0 up"};
  return {stored_attention(core(false)),
          stored_attention(core(true)),
          stored_attention(windowed),
          stored_attention(core(true), true),
          kept,
          chain({gemm("up", Precision::kBf16, {64, 128, 32}), bias(64, 128),
                 activation("gelu", Precision::kBf16, 64, 128, false),
                 gemm("down", Precision::kBf16, {64, 32, 128}),
                 norm("norm", Precision::kBf16, {64, 32, false, true})})};
}

TEST(Fusion, AttentionSavesWritingAndReadingTwoScoreMatrices) {
  const KernelGraph apart = stored_attention(core(false)), fused = fuse(apart);
  ASSERT_EQ(apart.kernels.size(), 3U);
  ASSERT_EQ(fused.kernels.size(), 1U);
  const double square = 2.0 * 8 * 100 * 160 * 2;  // bytes of one
  EXPECT_EQ(moved(apart) - moved(fused), 2 * (square + square));
  // What is left are queries and outputs of 8 heads, keys and values of 2.
  EXPECT_EQ(moved(fused), 2.0 * 2 * (100 * 8 * (64 + 32) + 160 * 2 * (64 + 32)));
}

TEST(Fusion, WithoutAMaskFlopsStay) {
  const KernelGraph apart = stored_attention(core(false)), fused = fuse(apart);
  EXPECT_EQ(matrix_flops(apart), 2.0 * 8 * 100 * 160 * 2 * (64 + 32));
  EXPECT_EQ(matrix_flops(fused), matrix_flops(apart));
  EXPECT_EQ(vector_flops(fused), vector_flops(apart));
}

TEST(Fusion, AttentionSkipsWhatItsMaskHides) {
  const KernelGraph fused = fuse(stored_attention(core(true)));
  double pairs = 0;
  for (int token = 1; token <= 100; ++token) pairs += 60 + token;
  EXPECT_EQ(matrix_flops(fused), 2.0 * 8 * pairs * 2 * (64 + 32));
}

TEST(Fusion, MakesTheFlashAttentionOfModels) {
  for (const bool causal : {false, true}) {
    for (const std::int64_t window : {0, 30}) {
      AttentionCore shape = core(causal);
      shape.window = causal ? window : 0;
      shape.cache_bytes = 1;
      const auto kernels = kernels_of(fuse(stored_attention(shape)));
      ASSERT_EQ(kernels.size(), 1U);
      EXPECT_EQ(kernels[0], flash_attention("attention", shape)) << causal << window;
    }
  }
}

TEST(Fusion, AnEpilogueSavesOneResult) {
  const KernelGraph apart = chain({gemm("up", Precision::kBf16, {64, 128, 32}), bias(64, 128),
                                   activation("gelu", Precision::kBf16, 64, 128, false)});
  const KernelGraph fused = fuse(apart);
  ASSERT_EQ(fused.kernels.size(), 1U);
  // Written by the product, read and written by the bias, read by the activation.
  EXPECT_EQ(moved(apart) - moved(fused), 4 * 64 * 128 * 2);
  EXPECT_EQ(fused.kernels[0].kernel.name, "up + bias + gelu");
  EXPECT_EQ(matrix_flops(fused), matrix_flops(apart));
  EXPECT_EQ(vector_flops(fused), vector_flops(apart));
}

TEST(Fusion, ScoresMayBeScaledAndMaskedByEpilogues) {
  KernelGraph apart = stored_attention(core(false));
  // Scale and mask between scores and softmax, with a tensor of their own.
  const std::vector<TensorUse> written = apart.kernels[0].writes;
  KernelGraph graph;
  graph.add(apart.kernels[0].kernel, apart.kernels[0].reads, {{"raw", written[0].bytes}});
  graph.add(bias(2 * 8 * 100, 160), {{"raw", written[0].bytes}, {"mask", Bytes(160)}}, written);
  graph.add(apart.kernels[1].kernel, apart.kernels[1].reads, apart.kernels[1].writes,
            apart.kernels[1].scores);
  graph.add(apart.kernels[2].kernel, apart.kernels[2].reads, apart.kernels[2].writes);
  const KernelGraph fused = fuse(graph);
  ASSERT_EQ(fused.kernels.size(), 1U);
  EXPECT_EQ(moved(fused), moved(fuse(apart)) + 160);
}

TEST(Fusion, AResultThatOthersNeedStaysInMemory) {
  KernelGraph twice = chain({gemm("up", Precision::kBf16, {64, 128, 32}), bias(64, 128)});
  twice.add(bias(64, 128), {{"result of 0 up", Bytes(64 * 128 * 2)}}, {{"other", Bytes(16384)}});
  EXPECT_EQ(fuse(twice), twice);
  const KernelGraph kept = examples()[4];
  EXPECT_EQ(fuse(kept), kept);
}

TEST(Fusion, KeepsInputsAndOutputs) {
  for (const KernelGraph& graph : examples()) {
    EXPECT_EQ(inputs_of(fuse(graph)), inputs_of(graph));
    EXPECT_EQ(outputs_of(fuse(graph)), outputs_of(graph));
  }
}

TEST(Fusion, NeverMovesMoreBytesNorLaunchesMore) {
  for (const KernelGraph& graph : examples()) {
    EXPECT_LE(moved(fuse(graph)), moved(graph));
    EXPECT_LE(fuse(graph).kernels.size(), graph.kernels.size());
    EXPECT_LE(matrix_flops(fuse(graph)), matrix_flops(graph));
  }
}

TEST(Fusion, TwiceIsOnce) {
  for (const KernelGraph& graph : examples()) EXPECT_EQ(fuse(fuse(graph)), fuse(graph));
}

TEST(Fusion, ATensorHasOneWriter) {
  KernelGraph graph = chain({bias(4, 4)});
  EXPECT_THROW(graph.add(bias(4, 4), {}, {{"result of 0 bias", Bytes(32)}}), std::logic_error);
}

}  // namespace
}  // namespace orrery::fusion_test
