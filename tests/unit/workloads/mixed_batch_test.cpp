// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "sim/config/diagnostics.h"
#include "sim/graph/verify.h"
#include "tests/unit/workloads/example_models.h"
#include "workloads/base/real.h"
#include "workloads/layers/work/token_batch.h"
#include "workloads/steps/figures/memory.h"
#include "workloads/steps/figures/statistics.h"
#include "workloads/steps/inference/inference.h"

namespace orrery::mixed_batch_test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

InferenceConfig mixed(MixedBatch batch, ParallelConfig parallel = {}) {
  InferenceConfig config;
  config.parallel = parallel;
  config.phase = Phase::kMixed;
  config.batch = std::move(batch);
  return config;
}

/// Two pieces of 16 tokens after 8 earlier ones, three decodes over 99 tokens and one over 49: 36
/// tokens, 6 of which sample.
MixedBatch example() {
  return {.chunks = {{.tokens = 16, .context = 8, .count = 2}}, .decodes = {{99, 3}, {49, 1}}};
}

/// The pieces of example(), and its decodes, as steps of their own.
std::vector<InferenceConfig> parts_of_example() {
  std::vector<InferenceConfig> parts(3);
  parts[0].phase = Phase::kPrefill;
  parts[0].micro_batch = 2;
  parts[0].sequence = 16;
  parts[0].kv_length = 8;
  parts[1].micro_batch = 3;
  parts[1].kv_length = 99;
  parts[2].kv_length = 49;
  return parts;
}

Flops matrix_flops(const LlmConfig& model, const InferenceConfig& config) {
  return program_statistics(build_inference(model, config)).matrix_flops();
}

std::vector<const Kernel*> kernels_of_kind(const Program& program, KernelClass kind) {
  std::vector<const Kernel*> found;
  for (const Kernel& kernel : program.kernels)
    if (kernel.kind == kind) found.push_back(&kernel);
  return found;
}

TEST(MixedBatch, ProductsHaveAllTokensAndTheHeadThoseThatSample) {
  // 49,152 elements in the matrices of a layer; 64 x 96 of the head. A query sees 8 + 1 to 8 + 16
  // keys in a piece: 264; decodes see 3 x 100 + 50. 8 heads of 8 columns, keys and values.
  const double linear = 2 * (36 * 4 * 49152.0 + 6 * 64 * 96);
  const double attention = 4 * 8 * 32.0 * (2 * 264 + 350);
  for (const ParallelConfig& plan : {ParallelConfig{}, ParallelConfig{.tp = 4, .pp = 2}})
    EXPECT_DOUBLE_EQ(matrix_flops(small_llama(4), mixed(example(), plan)).base(),
                     linear + attention);
}

TEST(MixedBatch, MatrixFlopsAreThoseOfItsParts) {
  for (const char* name : {"llama_3_1_8b", "mixtral_8x7b", "deepseek_v2_lite", "gemma_2_9b"}) {
    const LlmConfig model = library_model(name);
    Flops executed, useful;
    for (const InferenceConfig& part : parts_of_example()) {
      executed += matrix_flops(model, part);
      useful += model_flops(model, part);
    }
    EXPECT_NEAR(matrix_flops(model, mixed(example())) / executed, 1, 1e-12) << name;
    EXPECT_NEAR(model_flops(model, mixed(example())) / useful, 1, 1e-12) << name;
  }
}

TEST(MixedBatch, AttentionReadsTheCacheOfEachSequenceOnce) {
  const ProgramStatistics statistics =
      program_statistics(build_inference(small_llama(4), mixed(example())));
  // A token in the cache: keys and values of 4 heads of 8 columns of 2 bytes. Queries and results:
  // 8 heads.
  const double cached = 2 * 4 * 8 * 2.0, row = 8 * 8 * 2.0;
  EXPECT_DOUBLE_EQ(statistics.kernels.at("attention_decode").bytes.base(),
                   4 * (350 * cached + 4 * 2 * row));
  EXPECT_DOUBLE_EQ(statistics.kernels.at("attention_prefill").bytes.base(),
                   4 * (2 * 24 * cached + 32 * 2 * row));
}

TEST(MixedBatch, DecodesAreOneKernelWhateverTheirContexts) {
  const Program program = build_inference(small_llama(4), mixed(example()));
  const auto decodes = kernels_of_kind(program, KernelClass::kAttentionDecode);
  ASSERT_EQ(decodes.size(), 1U);
  EXPECT_THAT(decodes[0]->attention.lengths, ElementsAre(100, 100, 100, 50));
  EXPECT_EQ(decodes[0]->n, 88);  // of 87.5
  const auto pieces = kernels_of_kind(program, KernelClass::kAttentionPrefill);
  ASSERT_EQ(pieces.size(), 1U);
  EXPECT_EQ(pieces[0]->attention.sequences, 2);
  EXPECT_EQ(pieces[0]->m, 16);
  EXPECT_EQ(pieces[0]->n, 24);
}

TEST(MixedBatch, PromptsAreOneKernelWhateverTheirLengths) {
  const MixedBatch two{.chunks = {{.tokens = 16, .context = 8, .count = 2}, {.tokens = 40}},
                       .decodes = {}};
  for (const char* name : {"llama_3_1_8b", "deepseek_v2_lite"}) {
    const LlmConfig model = library_model(name);
    Flops apart;
    for (const PrefillChunk& chunk : two.chunks)
      apart += matrix_flops(model, mixed({.chunks = {chunk}, .decodes = {}}));
    const Program program = build_inference(model, mixed(two));
    EXPECT_NEAR(program_statistics(program).matrix_flops() / apart, 1, 1e-12) << name;
    const bool latent = model.attention.kind == AttentionKind::kLatent;
    const auto kernels = kernels_of_kind(
        program, latent ? KernelClass::kMlaPrefill : KernelClass::kAttentionPrefill);
    // 264 pairs of each of the two and 820 of the other, of 72 tokens: three times 24 tokens have
    // 3 x 300 pairs, and 448 more over 72 are 6 earlier keys.
    for (const Kernel* kernel : kernels) {
      EXPECT_EQ(kernel->attention.sequences, 3);
      EXPECT_EQ(kernel->m, 24);
      EXPECT_EQ(kernel->n, 30);
    }
    EXPECT_EQ(kernels.size(),
              kernels_of_kind(build_inference(model, mixed(example())),
                              latent ? KernelClass::kMlaPrefill : KernelClass::kAttentionPrefill)
                  .size());
  }
}

TEST(PromptSum, PromptsThatAreAlikeAreThemselves) {
  PromptSum sum;
  for (int i = 0; i < 5; ++i) sum.add({3, 100, 164});
  EXPECT_EQ(sum.alike(), (Prompts{15, 100, 164}));
  EXPECT_EQ(sum.tokens, 1500);
  EXPECT_EQ(sum.keys, 15 * 164);
}

TEST(PromptSum, KeepsTokensAndPairs) {
  PromptSum sum, alike;
  for (const Prompts& prompts :
       {Prompts{1, 8000, 8000}, Prompts{4, 16, 2000}, Prompts{1, 700, 900}})
    sum.add(prompts);
  alike.add(sum.alike());
  EXPECT_EQ(alike.sequences, 6);
  EXPECT_NEAR(real(alike.tokens) / real(sum.tokens), 1, 0.5 * 6 / real(sum.tokens));
  EXPECT_NEAR(alike.pairs, sum.pairs, 0.5 * real(sum.tokens));  // half an earlier token each
}

TEST(MixedBatch, LatentAttentionExpandsPiecesAndAbsorbsDecodes) {
  const LlmConfig model = library_model("deepseek_v2_lite");
  const Program program = build_inference(model, mixed(example()));
  const auto rows = [&](const char* name) {
    for (const Kernel& kernel : program.kernels)
      if (kernel.name == name) return kernel.m;
    return std::int64_t{0};
  };
  EXPECT_EQ(rows("key-value up"), 48);  // 2 x 24: earlier tokens are expanded again
  EXPECT_EQ(rows("query absorb"), 4);
  EXPECT_EQ(rows("value up"), 4);
  EXPECT_EQ(rows("query up"), 36);
  EXPECT_EQ(kernels_of_kind(program, KernelClass::kMlaPrefill).size(), 1U);
  EXPECT_EQ(kernels_of_kind(program, KernelClass::kMlaDecode).size(), 1U);
}

TEST(MixedBatch, CollectivesCarryAllTokens) {
  const auto bytes = [](const LlmConfig& model, const ParallelConfig& plan, const char* kind) {
    const Program program = build_inference(model, mixed(example(), plan));
    return program_statistics(program).transfers.at(kind).bytes.base();
  };
  // Two all-reduces a layer and one of the embedding, of 36 rows of 64 columns, on two ranks.
  EXPECT_DOUBLE_EQ(bytes(small_llama(4), {.tp = 2}, "all_reduce tp"), 2 * 9 * 36 * 64 * 2.0);
  EXPECT_DOUBLE_EQ(bytes(small_llama(4), {.tp = 2}, "all_gather tp"), 2 * 6 * 96 * 2.0);
  // 18 tokens a rank, 2 copies each, on 8 ranks and 2 layers.
  EXPECT_DOUBLE_EQ(bytes(small_moe(2), {.tp = 2, .dp = 4, .ep = 8}, "dispatch ep"),
                   8 * 2 * 18 * 2 * 64 * 2.0);
}

TEST(MixedBatch, OnlyDecodesAloneSendCopiesStraightToTheirExperts) {
  const auto mode = [](const MixedBatch& batch) {
    const Program program =
        build_inference(small_moe(1), mixed(batch, {.tp = 2, .dp = 4, .ep = 8}));
    const auto dispatch =
        std::find_if(program.transfers.begin(), program.transfers.end(),
                     [](const Transfer& t) { return t.kind == TransferKind::kDispatch; });
    return dispatch->routing->mode;
  };
  EXPECT_EQ(mode(example()), ExpertRouting::Mode::kNormal);
  EXPECT_EQ(mode({.chunks = {}, .decodes = {{99, 3}, {49, 1}}}), ExpertRouting::Mode::kLowLatency);
}

TEST(MixedBatch, PiecesThatDoNotEndTheirPromptHaveNoLogits) {
  const auto names = [](const MixedBatch& batch) {
    std::vector<std::string> all;
    for (const Kernel& kernel : build_inference(small_llama(1), mixed(batch)).kernels)
      all.push_back(kernel.name);
    return all;
  };
  EXPECT_THAT(names({.chunks = {{.tokens = 16}}, .decodes = {}}), ::testing::Contains("head"));
  EXPECT_THAT(names({.chunks = {{.tokens = 16, .samples = false}}, .decodes = {}}),
              ::testing::Not(::testing::Contains("head")));
}

TEST(MixedBatch, OneKindAloneIsThePrefillOrDecodeThatItWas) {
  const auto same = [](const InferenceConfig& batch, const InferenceConfig& plain) {
    const Program a = build_inference(small_moe(2), batch);
    const Program b = build_inference(small_moe(2), plain);
    EXPECT_EQ(a.kernels, b.kernels);
    EXPECT_EQ(a.transfers, b.transfers);
    EXPECT_EQ(a.block_names, b.block_names);
  };
  const ParallelConfig plan{.tp = 2, .dp = 4, .ep = 8};
  std::vector<InferenceConfig> parts = parts_of_example();
  for (InferenceConfig& part : parts) part.parallel = plan;
  same(mixed({.chunks = example().chunks, .decodes = {}}, plan), parts[0]);
  same(mixed({.chunks = {}, .decodes = {{99, 3}}}, plan), parts[1]);
}

TEST(MixedBatch, EachSequenceHasItsOwnCache) {
  const MemoryUse use = inference_memory(small_llama(4), mixed(example())).front();
  EXPECT_DOUBLE_EQ(use.kv_cache.base(), 4 * (2 * 24 + 350) * 2 * 4 * 8 * 2.0);
  EXPECT_DOUBLE_EQ(use.logits.base(), 6 * 96 * 2.0);
}

TEST(MixedBatch, IsSoundUnderEveryParallelism) {
  for (const ParallelConfig& plan :
       {ParallelConfig{}, ParallelConfig{.tp = 2, .pp = 2, .dp = 2},
        ParallelConfig{.tp = 4, .dp = 2, .ep = 8}, ParallelConfig{.tp = 2, .sp = true, .pp = 2}}) {
    const LlmConfig model = plan.ep > 1 ? small_moe(4) : small_llama(4);
    EXPECT_THAT(verify(build_inference(model, mixed(example(), plan))), IsEmpty());
  }
}

TEST(MixedBatch, SaysWhatIsWrong) {
  const auto message = [](const MixedBatch& batch) -> std::string {
    try {
      require_supported(megatron_gpt(2, 64, 8), mixed(batch));
    } catch (const config::ConfigError& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_EQ(message(example()), "");
  EXPECT_THAT(message({}), HasSubstr("mixed.chunks"));
  EXPECT_THAT(message({.chunks = {{.tokens = 0}}, .decodes = {}}), HasSubstr("mixed.chunks"));
  EXPECT_THAT(message({.chunks = {}, .decodes = {{-1, 1}}}), HasSubstr("mixed.decodes"));
  EXPECT_THAT(message({.chunks = {{.tokens = 100, .context = 2000}}, .decodes = {}}),
              HasSubstr("2048 positions, got 2100"));
}

}  // namespace
}  // namespace orrery::mixed_batch_test
