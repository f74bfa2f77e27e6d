// SPDX-License-Identifier: Apache-2.0
// What kernels of a trace are: classes, products, copies, collectives.
#include <algorithm>

#include "tests/unit/workloads/formats/kineto_traces.h"
#include "workloads/formats/kineto/names.h"

namespace orrery::kineto_kernels_test {
namespace {

using testing::ElementsAre;

KernelClass class_of(const char* name) {
  const kineto::NameFacts facts = kineto::facts_of(name);
  EXPECT_TRUE(facts.classified) << name;
  return facts.kind;
}

TEST(KinetoKernels, HaveClassesByTheirNames) {
  EXPECT_EQ(class_of("nvjet_tst_128x256_64x4_2x1_v_bz_TNN"), KernelClass::kGemm);
  EXPECT_EQ(class_of("sm90_xmma_gemm_bf16bf16_bf16f32_f32_tn_n_tilesize128x128x64"),
            KernelClass::kGemm);
  EXPECT_EQ(class_of("void cutlass::Kernel<cutlass_80_tensorop_s1688gemm_64x64_16x6_nn_align4>"),
            KernelClass::kGemm);
  EXPECT_EQ(class_of("Cijk_Alik_Bljk_SB_MT64x16x32"), KernelClass::kGemm);
  EXPECT_EQ(class_of("void flash::flash_fwd_kernel<Flash_fwd_kernel_traits<128>>"),
            KernelClass::kAttentionPrefill);
  EXPECT_EQ(class_of("void flash_fwd_splitkv_kernel<128>"), KernelClass::kAttentionDecode);
  EXPECT_EQ(class_of("void (anonymous namespace)::softmax_warp_forward<float>"),
            KernelClass::kSoftmax);
  EXPECT_EQ(class_of("void at::native::vectorized_layer_norm_kernel<float>"),
            KernelClass::kNormalization);
  EXPECT_EQ(class_of("void at::native::vectorized_elementwise_kernel<4>"),
            KernelClass::kElementwise);
  EXPECT_EQ(class_of("sm80_xmma_fprop_implicit_gemm_indexed_tf32f32"), KernelClass::kConvolution);
  EXPECT_EQ(class_of("void at::native::multi_tensor_apply_kernel<Adam>"), KernelClass::kOptimizer);
  EXPECT_EQ(class_of("void fbgemm_gpu::permute_2D_lengths_kernel<int>"), KernelClass::kElementwise);
  EXPECT_FALSE(kineto::facts_of("my_own_kernel").classified);
  EXPECT_TRUE(kineto::facts_of("ncclDevKernel_AllReduce_Sum_bf16_RING_LL").collective);
  EXPECT_TRUE(kineto::facts_of("ncclKernel_SendRecv_RING_SIMPLE_Sum_int8_t").collective);
}

/// The product that a kernel inside an operator gets; one of FLOPs 0 where it gets none.
Kernel product_in(const std::string& name, const std::string& arguments,
                  const std::string& kernel = "gemm") {
  TraceText text;
  text.cpu(name, 0, 20, arguments).kernel(kernel, 5, 11, 10);
  const ReadTrace trace = read_trace_text(text.text());
  const NodeWork& work = trace.graph.works[trace.graph.nodes[trace.named(kernel).at(0)].work];
  return work.kernel == NodeWork::kNoKernel ? Kernel{} : trace.graph.kernels[work.kernel];
}

void expect_shape(const Kernel& kernel, std::int64_t batch, std::int64_t m, std::int64_t n,
                  std::int64_t k) {
  EXPECT_EQ(kernel.batch, batch);
  EXPECT_EQ(kernel.m, m);
  EXPECT_EQ(kernel.n, n);
  EXPECT_EQ(kernel.k, k);
  EXPECT_DOUBLE_EQ(kernel.matrix_flops.base(), 2.0 * static_cast<double>(batch * m * n * k));
}

TEST(KinetoKernels, ProductsHaveTheSizesOfTheirOperators) {
  const std::string types =
      R"(, "Input type": ["c10::BFloat16", "c10::BFloat16", "c10::BFloat16"])";
  const Kernel mm = product_in("aten::mm", R"("Input Dims": [[4, 8], [8, 2]])" + types);
  expect_shape(mm, 1, 4, 2, 8);
  EXPECT_EQ(mm.precision, Precision::kBf16);
  EXPECT_DOUBLE_EQ(mm.read.base(), (4 * 8 + 8 * 2) * 2.0);
  expect_shape(product_in("aten::addmm", R"("Input Dims": [[2], [4, 8], [8, 2]])" + types), 1, 4, 2,
               8);
  expect_shape(product_in("aten::bmm", R"("Input Dims": [[3, 4, 8], [3, 8, 2]])" + types), 3, 4, 2,
               8);
  expect_shape(product_in("aten::linear", R"("Input Dims": [[5, 4, 8], [2, 8], [2]])" + types), 1,
               20, 2, 8);
  expect_shape(product_in("aten::mm", R"("Input Dims": [[4, 8], [9, 2]])" + types), 1, 0, 0, 0);
  expect_shape(product_in("aten::mm", R"("Input Dims": [[4, 8], [8, 2]])"), 1, 0, 0, 0);
  expect_shape(product_in("aten::mm", R"("Input Dims": [[4, 8], [8, 2]])" + types, "softmax"), 1, 0,
               0, 0);
}

TEST(KinetoKernels, ThirtyTwoBitProductsOnTensorCoresAreTf32) {
  const std::string operands =
      R"("Input Dims": [[4, 8], [8, 2]], "Input type": ["float", "float"])";
  EXPECT_EQ(product_in("aten::mm", operands, "ampere_sgemm_128x64_nn").precision, Precision::kFp32);
  EXPECT_EQ(product_in("aten::mm", operands, "cutlass_80_tensorop_s1688gemm_64x64").precision,
            Precision::kTf32);
}

TEST(KinetoKernels, ConvolutionsAreProductsOfPositionsAndFilters) {
  // 2 x 3 x 224 x 224 by 64 x 3 x 7 x 7, padding 3, stride 2: 112 x 112 positions.
  const std::string operands = R"("Input Dims": [[2, 3, 224, 224], [64, 3, 7, 7], [], [], []],)"
                               R"( "Input type": ["float", "float", "", "", ""],)";
  const Kernel forward = product_in(
      "aten::cudnn_convolution",
      operands + R"( "Concrete Inputs": ["", "", "[3, 3]", "[2, 2]", "[1, 1]", "1"])", "fprop");
  expect_shape(forward, 1, 2 * 112 * 112, 64, 3 * 7 * 7);
  const Kernel generic = product_in(
      "aten::convolution",
      operands + R"( "Concrete Inputs": ["", "", "", "[2, 2]", "[3, 3]", "[1, 1]", "False"])",
      "fprop");
  expect_shape(generic, 1, 2 * 112 * 112, 64, 3 * 7 * 7);
  const Kernel backward =
      product_in("aten::convolution_backward",
                 R"("Input Dims": [[2, 64, 112, 112], [2, 3, 224, 224], [64, 3, 7, 7]],)"
                 R"( "Input type": ["float", "float", "float"])",
                 "wgrad");
  expect_shape(backward, 1, 2 * 112 * 112, 64, 3 * 7 * 7);
}

TEST(KinetoKernels, AttentionHasTheSizesOfItsQueriesAndKeys) {
  const std::string operands =
      R"("Input Dims": [[2, 32, 512, 128], [2, 8, 512, 128], [2, 8, 512, 128], [], []],)"
      R"( "Input type": ["c10::BFloat16", "c10::BFloat16", "c10::BFloat16", "Scalar", "Scalar"])";
  const auto attention = [&](const char* causal) {
    return product_in("aten::_scaled_dot_product_flash_attention",
                      operands + R"(, "Concrete Inputs": ["", "", "", "0.", ")" + causal + "\"]",
                      "void flash_fwd_kernel");
  };
  const Kernel whole = attention("False"), causal = attention("True");
  EXPECT_EQ(whole.kind, KernelClass::kAttentionPrefill);
  EXPECT_DOUBLE_EQ(whole.matrix_flops.base(), 4.0 * 2 * 32 * 512 * 512 * 128);
  EXPECT_DOUBLE_EQ(causal.matrix_flops.base(), 4.0 * 2 * 32 * (512 * 513 / 2.0) * 128);
  EXPECT_EQ(causal.attention.kv_heads, 8);
  EXPECT_EQ(product_in("aten::_scaled_dot_product_flash_attention", operands, "flash_fwd_kernel")
                .matrix_flops.base(),
            0);  // whether it is causal is not recorded
}

TEST(KinetoKernels, CopiesHaveTheirBytes) {
  TraceText text;
  text.copy("cudaMemcpyAsync", 0, 4, 9, 5);
  const ReadTrace trace = read_trace_text(text.text());
  ASSERT_EQ(trace.graph.kernels.size(), 1U);
  EXPECT_EQ(trace.graph.kernels[0].kind, KernelClass::kCopy);
  EXPECT_DOUBLE_EQ(trace.graph.kernels[0].host.base(), 4096);
  EXPECT_DOUBLE_EQ(trace.graph.kernels[0].read.base(), 4096);
  EXPECT_DOUBLE_EQ(trace.graph.kernels[0].written.base(), 0);
}

ReadTrace with_collective(const std::string& arguments, const std::string& before = {}) {
  TraceText text;
  text.kernel("ncclDevKernel_AllReduce_Sum_f32_RING_LL", 0, 6, 50, 20, arguments);
  return read_trace_text(text.text(before));
}

TEST(KinetoKernels, KernelsOfNcclAreCollectivesWhereTheTraceSaysEnough) {
  const ReadTrace trace = with_collective(
      R"(, "Collective name": "_allgather_base", "In msg nelems": 16, "Out msg nelems": 64,)"
      R"( "dtype": "BFloat16", "Group size": 4, "Process Group Ranks": "[1, 3, 5, 7]")");
  ASSERT_EQ(trace.graph.messages.size(), 1U);
  const ImportedMessage& message = trace.graph.messages[0];
  EXPECT_EQ(message.kind, TransferKind::kAllGather);
  EXPECT_DOUBLE_EQ(message.bytes.base(), 128);
  EXPECT_EQ(message.recorded, 50'000'000U);
  EXPECT_THAT(trace.communicators.groups().at(message.group), ElementsAre(1, 3, 5, 7));
}

TEST(KinetoKernels, GroupsThatAreCutAreFoundElsewhereInTheTrace) {
  const std::string cut =
      R"(, "Collective name": "reduce_scatter_tensor", "In msg nelems": 64, "Out msg nelems": 16,)"
      R"( "dtype": "Float", "Group size": 4, "Process Group Name": "7",)"
      R"( "Process Group Ranks": "[0, 1, ..., 3]")";
  const ReadTrace stride =
      with_collective(cut + R"(, "Global rank start": 2, "Global rank stride": 2)");
  EXPECT_THAT(stride.communicators.groups().at(0), ElementsAre(2, 4, 6, 8));
  EXPECT_EQ(stride.graph.messages.at(0).kind, TransferKind::kReduceScatter);
  EXPECT_DOUBLE_EQ(stride.graph.messages.at(0).bytes.base(), 256);
  const ReadTrace config = with_collective(
      cut, R"("distributedInfo": {"rank": 8, "world_size": 64, "pg_config": [{"pg_name": "7", )"
           R"("pg_size": 4, "ranks": [8, 9, 10, 11]}]}, )");
  EXPECT_THAT(config.communicators.groups().at(0), ElementsAre(8, 9, 10, 11));
  EXPECT_EQ(config.rank, 8);
  const ReadTrace world =
      with_collective(cut, R"("distributedInfo": {"rank": 3, "world_size": 4}, )");
  EXPECT_THAT(world.communicators.groups().at(0), ElementsAre(0, 1, 2, 3));
  EXPECT_TRUE(with_collective(cut).graph.messages.empty());
}

TEST(KinetoKernels, OtherKernelsOfNcclKeepTheRecordedTimeAndANoteSaysSo) {
  const ReadTrace trace = with_collective("");
  EXPECT_TRUE(trace.graph.messages.empty());
  EXPECT_NEAR(trace.span, 56, 1e-3);
  EXPECT_TRUE(trace.notes_contain("1 kernels of NCCL (0.05 ms)"));
  EXPECT_TRUE(std::any_of(trace.graph.works.begin(), trace.graph.works.end(),
                          [](const NodeWork& work) { return work.communicates; }));
}

TEST(KinetoKernels, CollectivesMayBeRecordedByTheOperatorAroundTheLaunch) {
  TraceText text;
  text.cpu("record_param_comms", 0, 9,
           R"("Collective name": "allreduce", "In msg nelems": 64, "Out msg nelems": 64,)"
           R"( "dtype": "Float", "Group size": 2, "Process Group Ranks": "[0, 1]")");
  text.kernel("ncclKernel_AllReduce_RING_LL_Sum_float", 3, 8, 50, 20);
  const ReadTrace trace = read_trace_text(text.text());
  ASSERT_EQ(trace.graph.messages.size(), 1U);
  EXPECT_DOUBLE_EQ(trace.graph.messages[0].bytes.base(), 256);
}

}  // namespace
}  // namespace orrery::kineto_kernels_test
