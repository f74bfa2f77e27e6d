// SPDX-License-Identifier: Apache-2.0
#include "workloads/layers/closed_forms.h"

#include <gtest/gtest.h>

#include <stdexcept>
#include <string>

#include "workloads/models/huggingface/huggingface.h"

namespace orrery::closed_forms_test {
namespace {

using namespace literals;

constexpr TextbookDimensions kExample = {
    .hidden = 2048, .layers = 24, .sequence = 1024, .batch = 8, .heads = 16, .vocabulary = 50000};

// 12 x 24 x 2048^2 = 1,207,959,552 and 50,000 x 2048 = 102,400,000.
TEST(TextbookExample, Has1310MillionParameters) {
  EXPECT_EQ(textbook_parameters(kExample), 1310359552);
}

// 1,310,359,552 x 2 B = 2,620,719,104 B; / 2^30 = 2.4407
TEST(TextbookExample, WeightsTake2440MebibytesInFp16) {
  EXPECT_NEAR(textbook_weights_fp16(kExample) / 1_GiB, 2.44, 0.005);
}

// 1,310,359,552 x 16 B = 20,965,752,832 B
TEST(TextbookExample, AdamStateTakes20970Megabytes) {
  EXPECT_NEAR(textbook_training_state(kExample) / 1_GB, 20.97, 0.005);
}

// 9 x 8 x 1024 x 2048 = 150,994,944 and 2 x 8 x 16 x 1024^2 = 268,435,456 values in each of 24
// layers, 2 B each: 20,132,659,200 B = 18.75 GiB exactly.
TEST(TextbookExample, ActivationsTake18750Mebibytes) {
  EXPECT_DOUBLE_EQ(textbook_activations(kExample) / 1_GiB, 18.75);
}

TEST(TextbookExample, DiffersFromTheExactCountByNormsBiasesAndPositionsOnly) {
  LlmConfig model;
  model.hidden = 2048;
  model.vocabulary = 50000;
  model.positions = 1024;
  model.tied_embeddings = true;
  model.norm_bias = true;
  model.attention.heads = model.attention.kv_heads = 16;
  model.attention.head_dim = 128;
  model.attention.qkv_bias = model.attention.output_bias = true;
  model.mlp = {.intermediate = 4 * 2048, .gated = false, .bias = true};
  model.layers.resize(24);
  const std::int64_t norms = 24 * 2 * 2 * 2048 + 2 * 2048;
  const std::int64_t biases = 24 * (4 * 2048 + 5 * 2048);  // q, k, v, o; 4 d and d of the MLP
  const std::int64_t positions = 1024 * 2048;
  EXPECT_EQ(count_parameters(model).total,
            textbook_parameters(kExample) + norms + biases + positions);
  EXPECT_EQ(count_parameters(model).active_matrices, textbook_parameters(kExample));
}

LlmConfig shipped(const std::string& name) {
  return load_huggingface(std::string(ORRERY_SOURCE_DIR) + "/configs/models/hf/" + name + ".json");
}

// "Model TFLOP" per token of the Megatron-Bridge performance tables, forward and backward (three
// times the forward pass): at a sequence of 8192 for Llama 3, of 4096 for the others.
TEST(ModelFlopsPerToken, AgreeWithThoseOfMegatronBridge) {
  const auto step = [](const std::string& name, std::int64_t sequence) {
    return 3 * model_flops_per_token(shipped(name), sequence, true) / 1_GFLOP;
  };
  EXPECT_NEAR(step("llama_3_1_8b", 8192), 51.5, 0.005 * 51.5);
  EXPECT_NEAR(step("llama_3_1_70b", 8192), 449, 0.005 * 449);
  EXPECT_NEAR(step("llama_3_1_405b", 8192), 2524, 0.005 * 2524);
  EXPECT_NEAR(step("deepseek_v3", 4096), 250, 0.005 * 250);
  EXPECT_NEAR(step("qwen3_235b_a22b", 4096), 148, 0.005 * 148);
  EXPECT_NEAR(step("qwen3_30b_a3b", 4096), 23.0, 0.005 * 23);
}

// Llama-3.1-8B at 8192: scores and values of 32 layers take 4 x 8192 x 4096 FLOPs each, half of it
// when causal.
TEST(ModelFlopsPerToken, CountHalfOfTheAttentionWhenCausal) {
  const LlmConfig model = shipped("llama_3_1_8b");
  const Flops all = model_flops_per_token(model, 8192, false);
  const Flops causal = model_flops_per_token(model, 8192, true);
  EXPECT_DOUBLE_EQ((all - causal).base(), 32.0 * 2 * 8192 * 4096);
}

TEST(ModelFlopsPerToken, OfAWindowStayAtItsSize) {
  LlmConfig model = shipped("llama_3_1_8b");
  const Flops unlimited = model_flops_per_token(model, 8192, true);
  for (LayerConfig& layer : model.layers) layer.window = 8192;
  EXPECT_EQ(model_flops_per_token(model, 8192, true), unlimited);
  for (LayerConfig& layer : model.layers) layer.window = 1024;
  // 1024 - 1024^2 / (2 x 8192) = 960 keys on average, 4 x 4096 FLOPs each in 32 layers
  const double matrices = 2.0 * static_cast<double>(count_parameters(model).active_matrices);
  EXPECT_DOUBLE_EQ(model_flops_per_token(model, 8192, true).base(),
                   matrices + 32.0 * 960 * 4 * 4096);
  EXPECT_DOUBLE_EQ(model_flops_per_token(model, 512, false).base(),
                   matrices + 32.0 * 512 * 4 * 4096);
}

TEST(ModelFlopsPerToken, GrowWithTheSequence) {
  const LlmConfig model = shipped("deepseek_v3");
  Flops last;
  for (const std::int64_t sequence : {1, 128, 4096, 131072}) {
    const Flops flops = model_flops_per_token(model, sequence, true);
    EXPECT_GT(flops, last);
    last = flops;
  }
}

TEST(AnswerFlops, AreThoseOfItsTokens) {
  const LlmConfig model = shipped("llama_3_1_8b");
  const AnswerFlops flops(model);
  const double head = 2.0 * 128256 * 4096;
  // A prompt of 512 and its first token: the head once instead of 512 times.
  EXPECT_DOUBLE_EQ(flops.of(512, 0, 1).base(),
                   model_flops_per_token(model, 512, true).base() * 512 - 511 * head);
  // Of 513 tokens in all 256 were kept: 257 are computed, and the head twice. Keys are half of the
  // squares, 4 x 4096 FLOPs each in 32 layers.
  const double matrices = 2.0 * static_cast<double>(count_parameters(model).active_matrices) - head;
  EXPECT_DOUBLE_EQ(flops.of(512, 256, 2).base(),
                   matrices * 257 + head * 2 + 32.0 * 4 * 4096 * (513 * 513 - 256 * 256) / 2);
}

TEST(ModelFlopsPerToken, OfAnEmptySequenceAreABug) {
  EXPECT_THROW(model_flops_per_token(shipped("gpt2"), 0, true), std::logic_error);
}

}  // namespace
}  // namespace orrery::closed_forms_test
