// SPDX-License-Identifier: Apache-2.0
// BERT: 12 layers of 768, 12 heads, an MLP of 3,072, by hand.
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "sim/config/diagnostics.h"
#include "sim/graph/verify.h"
#include "tests/unit/workloads/example_models.h"
#include "workloads/steps/figures/memory.h"
#include "workloads/steps/figures/statistics.h"
#include "workloads/steps/inference/inference.h"
#include "workloads/steps/training/training.h"

namespace orrery::encoder_alone_test {
namespace {

LlmConfig bert() {
  return from_huggingface({{"model_type", "bert"},
                           {"hidden_size", 768},
                           {"num_hidden_layers", 12},
                           {"num_attention_heads", 12},
                           {"intermediate_size", 3072},
                           {"max_position_embeddings", 512},
                           {"type_vocab_size", 2},
                           {"vocab_size", 30522}},
                          "bert");
}

InferenceConfig reading(std::int64_t sequences, std::int64_t tokens, int tp = 1) {
  InferenceConfig config;
  config.phase = Phase::kPrefill;
  config.parallel.tp = tp;
  config.micro_batch = sequences;
  config.sequence = tokens;
  return config;
}

TEST(EncoderAlone, SeesAllPairsAndHasNoHead) {
  // Matrices of a layer: 12 x 768^2. Every token meets every token, 2 x 768 multiply-adds each.
  const double matrices = 12.0 * 12 * 768 * 768, pairs = 512.0 * 512 * 12 * 2 * 768;
  // Every rank pools the first token of each sequence.
  const double layers = 2 * 8 * (512 * matrices + pairs), pooler = 2 * 8 * 768.0 * 768;
  for (const int tp : {1, 4}) {
    const Program program = build_inference(bert(), reading(8, 512, tp));
    EXPECT_TRUE(verify(program).empty());
    EXPECT_DOUBLE_EQ(program_statistics(program).matrix_flops().base(), layers + tp * pooler);
    EXPECT_TRUE(std::none_of(program.kernels.begin(), program.kernels.end(), [](const Kernel& k) {
      return k.name.find("head") != std::string::npos || k.name.find("cache") != std::string::npos;
    }));
  }
  EXPECT_DOUBLE_EQ(model_flops(bert(), reading(8, 512)).base(), layers + pooler);
}

TEST(EncoderAlone, KeepsNothingOfASequence) {
  const MemoryUse use = inference_memory(bert(), reading(8, 512)).front();
  EXPECT_EQ(use.kv_cache.base(), 0);
  EXPECT_EQ(use.logits.base(), 0);
  EXPECT_DOUBLE_EQ(use.weights.base(), 2.0 * 109482240);
}

TEST(EncoderAlone, HasNoNextTokenAndDoesNotTrain) {
  InferenceConfig decode;
  decode.kv_length = 16;
  EXPECT_THROW(build_inference(bert(), decode), config::KeyError);
  InferenceConfig continued = reading(1, 128);
  continued.kv_length = 16;
  EXPECT_THROW(build_inference(bert(), continued), config::KeyError);
  TrainingConfig training;
  training.global_batch = training.micro_batch = 1;
  training.sequence = 128;
  EXPECT_THROW(require_supported(bert(), training), config::KeyError);
}

// ModernBERT-base: 22 layers of 768, 12 heads, gated MLPs of 1,152; every third layer sees all, the
// others 64 tokens on each side: of 1,024 tokens 64 at each end miss 1 to 64 of 129, 2 x 64 x 65
// / 2.
TEST(EncoderAlone, WindowsReachToBothSides) {
  const LlmConfig model = from_huggingface({{"model_type", "modernbert"},
                                            {"hidden_size", 768},
                                            {"num_hidden_layers", 22},
                                            {"num_attention_heads", 12},
                                            {"intermediate_size", 1152},
                                            {"local_attention", 128},
                                            {"global_attn_every_n_layers", 3},
                                            {"vocab_size", 50368}},
                                           "modernbert");
  const double matrices = 22 * (4 * 768.0 * 768 + 3 * 768.0 * 1152);
  const double pairs = 8 * 1024.0 * 1024 + 14 * (1024.0 * 129 - 64 * 65);
  const Program program = build_inference(model, reading(2, 1024));
  EXPECT_DOUBLE_EQ(program_statistics(program).matrix_flops().base(),
                   2 * 2 * (1024 * matrices + pairs * 2 * 768));
}

TEST(EncoderAlone, HeadsOfOtherClassesAreLeftOutAndSaidToBe) {
  nlohmann::json fields = {{"model_type", "roberta"},
                           {"hidden_size", 768},
                           {"num_hidden_layers", 12},
                           {"num_attention_heads", 12},
                           {"intermediate_size", 3072},
                           {"max_position_embeddings", 514},
                           {"type_vocab_size", 1},
                           {"vocab_size", 50265},
                           {"architectures", {"RobertaModel"}}};
  const LlmConfig whole = from_huggingface(fields, "roberta");
  EXPECT_TRUE(whole.warnings.empty());
  EXPECT_TRUE(whole.pooler);
  EXPECT_EQ(whole.positions, 512);
  fields["architectures"] = {"RobertaForMaskedLM"};
  const LlmConfig masked = from_huggingface(fields, "roberta");
  EXPECT_FALSE(masked.pooler);
  ASSERT_EQ(masked.warnings.size(), 1U);
  EXPECT_NE(masked.warnings.front().find("RobertaForMaskedLM"), std::string::npos);
  fields["is_decoder"] = true;
  EXPECT_THROW(from_huggingface(fields, "roberta"), UnsupportedModel);
}

}  // namespace
}  // namespace orrery::encoder_alone_test
