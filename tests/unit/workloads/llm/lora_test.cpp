// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "tests/unit/workloads/example_models.h"
#include "workloads/layers/layers.h"
#include "workloads/steps/figures/memory.h"
#include "workloads/steps/inference/inference.h"

namespace orrery::lora_test {
namespace {

/// A decode of 6 sequences with 3 adapters of rank 4.
InferenceConfig adapted(const ParallelConfig& plan = {}) {
  InferenceConfig config;
  config.parallel = plan;
  config.phase = Phase::kDecode;
  config.micro_batch = 6;
  config.kv_length = 9;
  config.lora = LoraConfig{.max_loras = 5, .max_lora_rank = 4};
  config.adapters = 3;
  return config;
}

std::vector<Kernel> adapter_kernels(const InferenceConfig& config) {
  const LlmConfig model = small_llama(1);
  const StepList layer = layer_forward(model, model.layers.front(), rank_work(config));
  std::vector<Kernel> kernels;
  for (const Step& step : layer.steps())
    if (step.kernel() != nullptr && step.kernel()->kind == KernelClass::kLora)
      kernels.push_back(*step.kernel());
  return kernels;
}

TEST(Lora, EachMatrixHasTwoProductsForAllAdaptersTogether) {
  const std::vector<Kernel> kernels = adapter_kernels(adapted());
  ASSERT_EQ(kernels.size(), 8U);
  // Hidden 64: queries of 64, keys and values of 32 columns, each with an A of 64 x 4.
  EXPECT_EQ(kernels[0].name, "qkv lora shrink");
  EXPECT_DOUBLE_EQ(kernels[0].matrix_flops.base(), 2.0 * 6 * 64 * 3 * 4);
  EXPECT_DOUBLE_EQ(kernels[0].read.base(), 6 * 64 * 2 + 3 * 64 * 12 * 2);
  EXPECT_DOUBLE_EQ(kernels[0].written.base(), 6 * 12 * 4);  // fp32
  EXPECT_EQ(kernels[1].name, "qkv lora expand");
  EXPECT_DOUBLE_EQ(kernels[1].matrix_flops.base(), 2.0 * 6 * 4 * 128);
  EXPECT_DOUBLE_EQ(kernels[1].read.base(), 6 * 12 * 4 + 3 * 4 * 128 * 2 + 6 * 128 * 2);
  EXPECT_DOUBLE_EQ(kernels[1].written.base(), 6 * 128 * 2);
  // 2 x tokens x rank x (in + out) of q, k, v, o, gate, up and down.
  double flops = 0;
  for (const Kernel& kernel : kernels) flops += kernel.matrix_flops.base();
  const double columns = (64 + 64) + 2 * (64 + 32) + (64 + 64) + 2 * (64 + 192) + (192 + 64);
  EXPECT_DOUBLE_EQ(flops, 2.0 * 6 * 4 * columns);
}

TEST(Lora, AnotherAdapterIsReadAndComputesNothing) {
  InferenceConfig more = adapted();
  more.adapters = 4;
  const std::vector<Kernel> three = adapter_kernels(adapted()), four = adapter_kernels(more);
  double read = 0;
  for (std::size_t i = 0; i < three.size(); ++i) {
    EXPECT_EQ(three[i].matrix_flops, four[i].matrix_flops);
    EXPECT_EQ(three[i].written, four[i].written);
    read += (four[i].read - three[i].read).base();
  }
  // Its A and B once, which is what a slot holds.
  EXPECT_DOUBLE_EQ(read, adapter_bytes(small_llama(1), adapted(), 0).base());
}

TEST(Lora, TensorParallelRanksShareTheColumnsOfBOrTheRowsOfA) {
  const std::vector<Kernel> kernels = adapter_kernels(adapted({.tp = 2}));
  // Of column-parallel matrices A is whole and B half; of row-parallel ones it is the other way.
  EXPECT_DOUBLE_EQ(kernels[0].matrix_flops.base(), 2.0 * 6 * 64 * 12);
  EXPECT_DOUBLE_EQ(kernels[1].matrix_flops.base(), 2.0 * 6 * 4 * 64);
  EXPECT_DOUBLE_EQ(kernels[2].matrix_flops.base(), 2.0 * 6 * 32 * 4);
  EXPECT_DOUBLE_EQ(kernels[3].matrix_flops.base(), 2.0 * 6 * 4 * 64);
  const LlmConfig model = small_llama(1);
  const auto collectives = [&](const InferenceConfig& config) {
    std::vector<Transfer> all = build_inference(model, config).transfers;
    return all;
  };
  InferenceConfig without = adapted({.tp = 2});
  without.adapters = 0;
  EXPECT_EQ(collectives(adapted({.tp = 2})), collectives(without));
}

TEST(Lora, SlotsOfTheLargestRankStayInMemory) {
  InferenceConfig without = adapted();
  without.lora.reset();
  const auto weights = [](const InferenceConfig& config) {
    return inference_memory(small_llama(3), config).front().weights.base();
  };
  const double columns = (64 + 64) + 2 * (64 + 32) + (64 + 64) + 2 * (64 + 192) + (192 + 64);
  EXPECT_DOUBLE_EQ(weights(adapted()) - weights(without), 3 * 5 * 4 * columns * 2.0);
}

TEST(Lora, ChangesTheMatricesThatItTargets) {
  InferenceConfig config = adapted();
  config.lora->target_modules = {LoraModule::kOProj};
  const std::vector<Kernel> kernels = adapter_kernels(config);
  ASSERT_EQ(kernels.size(), 2U);
  EXPECT_EQ(kernels[0].name, "attention output lora shrink");
  EXPECT_DOUBLE_EQ(adapter_bytes(small_llama(1), config, 0).base(), (64 + 64) * 4 * 2.0);
}

TEST(Lora, WithoutAdaptersAStepIsWhatItWas) {
  InferenceConfig config = adapted(), without = adapted();
  config.adapters = 0;
  without.lora.reset();
  without.adapters = 0;
  EXPECT_EQ(build_inference(small_llama(2), config).kernels,
            build_inference(small_llama(2), without).kernels);
}

TEST(Lora, RefusesWhatIsNotKnown) {
  InferenceConfig config = adapted();
  config.adapters = 6;
  EXPECT_THROW(require_supported(small_llama(1), config), config::KeyError);
  EXPECT_THROW(require_supported(small_moe(1), adapted()), config::KeyError);
  config = adapted();
  config.lora->target_modules = {LoraModule::kQkvProj};
  EXPECT_NO_THROW(require_supported(small_moe(1), config));
  EXPECT_THROW(require_supported(library_model("deepseek_v3"), config), config::KeyError);
}

}  // namespace
}  // namespace orrery::lora_test
