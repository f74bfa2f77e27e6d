// SPDX-License-Identifier: Apache-2.0
#include "workloads/layers/attention/context_parallel.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sim/graph/verify.h"
#include "tests/unit/workloads/example_models.h"
#include "workloads/steps/figures/memory.h"
#include "workloads/steps/figures/statistics.h"
#include "workloads/steps/inference/inference.h"

namespace orrery::context_parallel_test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr double kGiB = 1024.0 * 1024 * 1024;

InferenceConfig prefill(std::int64_t tokens, std::int64_t earlier, ParallelConfig parallel) {
  InferenceConfig config;
  config.parallel = parallel;
  config.phase = Phase::kPrefill;
  config.sequence = tokens;
  config.kv_length = earlier;
  return config;
}

InferenceConfig decode(std::int64_t sequences, std::int64_t earlier, ParallelConfig parallel) {
  InferenceConfig config;
  config.parallel = parallel;
  config.micro_batch = sequences;
  config.kv_length = earlier;
  return config;
}

std::vector<Kernel> kernels_of(const Program& program, KernelClass kind) {
  std::vector<Kernel> found;
  for (const Kernel& kernel : program.kernels)
    if (kernel.kind == kind) found.push_back(kernel);
  return found;
}

Kernel kernel_named(const Program& program, const std::string& name) {
  for (const Kernel& kernel : program.kernels)
    if (kernel.name == name) return kernel;
  ADD_FAILURE() << "no kernel " << name;
  return {};
}

/// "all_gather cp 1024": kinds, purposes and bytes of all transfers of context parallel ranks.
std::vector<std::string> exchanges(const Program& program) {
  std::vector<std::string> all;
  for (const Transfer& transfer : program.transfers) {
    if (transfer.purpose != "cp" && transfer.purpose != "dcp") continue;
    all.push_back(std::string(to_string(transfer.kind)) + " " + transfer.purpose + " " +
                  std::to_string(static_cast<std::int64_t>(transfer.bytes.base())));
  }
  return all;
}

double attention_flops(const Program& program) {
  double flops = 0;
  for (const KernelClass kind : {KernelClass::kAttentionPrefill, KernelClass::kMlaPrefill})
    for (const Kernel& kernel : kernels_of(program, kind)) flops += kernel.matrix_flops.base();
  return flops;
}

LlmConfig one_layer(const char* name) {
  LlmConfig model = library_model(name);
  model.layers.resize(1);
  return model;
}

TEST(ContextParallel, TokensOfAPromptAreCutIntoTwoPiecesForEachRank) {
  EXPECT_EQ(context_piece(131072, 8), 8192);
  EXPECT_EQ(context_share(131072, 8), 16384);
  EXPECT_EQ(context_share(100, 8), 14);  // padded to 112
  EXPECT_EQ(context_share(1, 8), 2);
  EXPECT_EQ(context_share(101, 1), 101);
}

/// 128k tokens of Llama-3.1-8B on eight ranks.
TEST(ContextParallel, ARankHasAnEighthOfAPromptsWork) {
  const LlmConfig model = one_layer("llama_3_1_8b");
  const Program whole = build_inference(model, prefill(131072, 0, {}));
  const Program shared = build_inference(model, prefill(131072, 0, {.cp = 8}));
  EXPECT_EQ(shared.ranks, 8);
  EXPECT_DOUBLE_EQ(attention_flops(shared) * 8, attention_flops(whole));
  // 2 x 2 x 32 heads x 128 columns of the pairs of a triangle.
  EXPECT_DOUBLE_EQ(attention_flops(whole), 4.0 * 32 * 128 * 131072 * 131073 / 2);
  EXPECT_EQ(kernel_named(shared, "qkv").m, 16384);
  EXPECT_EQ(kernel_named(shared, "down").m, kernel_named(whole, "down").m / 8);
  EXPECT_EQ(kernel_named(shared, "head").m, 1);
  // Keys and values of 8 heads of 128 columns in 2 B, of which a rank brings an eighth; hidden
  // states of 4,096 columns, once.
  EXPECT_THAT(exchanges(shared),
              ElementsAre("all_gather cp " + std::to_string(131072LL * 2 * 8 * 128 * 2),
                          "all_gather cp " + std::to_string(131072LL * 4096 * 2)));
  EXPECT_THAT(shared.transfers.front().groups, ElementsAre(ElementsAre(0, 1, 2, 3, 4, 5, 6, 7)));
  EXPECT_THAT(verify(shared), IsEmpty());
}

TEST(ContextParallel, APieceOfAPromptSeesTheCacheOfAllRanks) {
  const LlmConfig model = one_layer("llama_3_1_8b");
  InferenceConfig config = prefill(4096, 12288, {.tp = 2, .cp = 4});
  config.kv_precision = Precision::kFp8;
  const Program shared = build_inference(model, config);
  config.parallel.cp = 1;
  EXPECT_DOUBLE_EQ(attention_flops(shared) * 4, attention_flops(build_inference(model, config)));
  // 4 heads on a rank: new tokens in 2 B, earlier ones as they are in the cache.
  EXPECT_EQ(exchanges(shared).front(),
            "all_gather cp " + std::to_string((4096 * 2 + 12288) * 2 * 4 * 128));
  // Ranks 0 and 1 are tensor parallel.
  for (const Transfer& transfer : shared.transfers) {
    if (transfer.purpose != "cp") continue;
    EXPECT_THAT(transfer.groups, ElementsAre(ElementsAre(0, 2, 4, 6), ElementsAre(1, 3, 5, 7)));
  }
}

TEST(ContextParallel, DecodesAreOfAllRanksAndSeeAPartOfTheCacheOnEach) {
  const LlmConfig model = one_layer("llama_3_1_8b");
  const Program shared = build_inference(model, decode(4, 1'048'575, {.cp = 8}));
  EXPECT_EQ(kernel_named(shared, "qkv").m, 4);
  const Kernel attention = kernel_named(shared, "attention");
  EXPECT_EQ(attention.n, 131072);
  EXPECT_EQ(attention.batch, 4 * 32);
  // Keys and values of 8 heads of 128 columns in 2 B; queries and outputs of 32 heads.
  EXPECT_DOUBLE_EQ(attention.read.base(), 4.0 * 131072 * 2 * 8 * 128 * 2 + 4 * 32 * 128 * 2);
  // A sum in 4 B for each of 8 ranks, 4 tokens and 32 heads; then outputs.
  EXPECT_THAT(exchanges(shared), ElementsAre("all_gather cp " + std::to_string(4 * 8 * 4 * 32),
                                             "all_reduce cp " + std::to_string(4 * 32 * 128 * 2)));
}

TEST(ContextParallel, AMixedStepHasSharesOfPromptsAndWholeDecodes) {
  const LlmConfig model = one_layer("llama_3_1_8b");
  InferenceConfig config;
  config.parallel.cp = 4;
  config.phase = Phase::kMixed;
  config.batch = {.chunks = {{.tokens = 1000, .context = 64, .count = 2}, {.tokens = 3}},
                  .decodes = {{4095, 1}, {8191, 4}}};
  const Program program = build_inference(model, config);
  // 1,000 tokens are 8 pieces of 125, 3 are 8 of one.
  EXPECT_EQ(kernel_named(program, "qkv").m, 2 * 250 + 2 + 5);
  EXPECT_EQ(kernel_named(program, "head").m, 3 + 5);
  EXPECT_THAT(kernels_of(program, KernelClass::kAttentionDecode).front().attention.lengths,
              ElementsAre(1024, 2048, 2048, 2048, 2048));
  EXPECT_EQ(step_tokens(config), 2003 + 5);
  EXPECT_THAT(verify(program), IsEmpty());
}

/// Four KV heads on eight ranks: two ranks have copies of each.
TEST(ContextParallel, RanksOfATensorGroupShareTheCacheOfAHead) {
  const LlmConfig model = one_layer("qwen3_235b_a22b");
  ASSERT_EQ(model.attention.kv_heads, 4);
  ASSERT_EQ(model.attention.heads, 64);
  const Program program = build_inference(model, decode(3, 65535, {.tp = 8, .dcp = 2, .ep = 8}));
  const Kernel attention = kernel_named(program, "attention");
  EXPECT_EQ(attention.n, 32768);
  EXPECT_EQ(attention.batch, 3 * 16);  // the heads of two ranks
  EXPECT_EQ(attention.attention.kv_heads, 1);
  const std::string heads = std::to_string(3 * 16 * 128 * 2);
  EXPECT_THAT(exchanges(program), ElementsAre("all_gather dcp " + heads,
                                              "all_gather dcp " + std::to_string(4 * 2 * 3 * 16),
                                              "reduce_scatter dcp " + heads));
  for (const Transfer& transfer : program.transfers) {
    if (transfer.purpose != "dcp") continue;
    EXPECT_THAT(transfer.groups, ElementsAre(ElementsAre(0, 1), ElementsAre(2, 3),
                                             ElementsAre(4, 5), ElementsAre(6, 7)));
  }
}

TEST(ContextParallel, RanksOfATensorGroupShareALatent) {
  const LlmConfig model = one_layer("deepseek_v3");
  const Program program = build_inference(model, decode(2, 8191, {.tp = 8, .dcp = 8}));
  const Kernel attention = kernel_named(program, "attention");
  EXPECT_EQ(attention.n, 1024);
  EXPECT_EQ(attention.batch, 2 * 128);
  // Queries of 512 + 64 columns, outputs of 512, of all heads.
  EXPECT_THAT(exchanges(program),
              ElementsAre("all_gather dcp " + std::to_string(2 * 128 * 576 * 2),
                          "all_gather dcp " + std::to_string(4 * 8 * 2 * 128),
                          "reduce_scatter dcp " + std::to_string(2 * 128 * 512 * 2)));
  EXPECT_EQ(kernel_named(program, "value up").batch, 16);
}

TEST(ContextParallel, APromptOverASharedCacheIsAsMuchAttention) {
  const LlmConfig model = one_layer("qwen3_235b_a22b");
  const InferenceConfig first = prefill(2048, 0, {.tp = 8, .dcp = 2, .ep = 8});
  EXPECT_THAT(exchanges(build_inference(model, first)), IsEmpty());
  InferenceConfig later = prefill(2048, 6144, {.tp = 8, .dcp = 2, .ep = 8});
  const Program shared = build_inference(model, later);
  later.parallel.dcp = 1;
  EXPECT_DOUBLE_EQ(attention_flops(shared), attention_flops(build_inference(model, later)));
  const Kernel over = kernel_named(shared, "attention over the cache");
  EXPECT_EQ(over.m, 2048);
  EXPECT_EQ(over.n, 3072);
  EXPECT_EQ(over.batch, 16);
}

TEST(ContextParallel, LatentsOfEarlierTokensComeTogether) {
  const LlmConfig model = one_layer("deepseek_v3");
  const Program program = build_inference(model, prefill(1024, 4096, {.tp = 4, .cp = 2, .dcp = 4}));
  // 576 columns of 1,024 new tokens and of a quarter of the earlier ones; then those of all.
  const std::int64_t cp = (1024LL + 1024) * 576 * 2, dcp = 4096LL * 576 * 2;
  EXPECT_EQ(exchanges(program)[0], "all_gather cp " + std::to_string(cp));
  EXPECT_EQ(exchanges(program)[1], "all_gather dcp " + std::to_string(dcp));
  EXPECT_EQ(kernel_named(program, "key-value up").m, 5120);  // each rank for its heads
  EXPECT_DOUBLE_EQ(attention_flops(program) * 2,
                   attention_flops(build_inference(model, prefill(1024, 4096, {.tp = 4}))));
}

TEST(ContextParallel, ARankHasItsShareOfTheCacheAndAllWeights) {
  const auto memory = [](const char* model, ParallelConfig parallel) {
    return inference_memory(library_model(model), decode(1, 1'048'575, parallel)).front();
  };
  const MemoryUse whole = memory("llama_3_1_8b", {}), shared = memory("llama_3_1_8b", {.cp = 8});
  EXPECT_EQ(shared.weights, whole.weights);
  EXPECT_DOUBLE_EQ(whole.kv_cache.base(), 128 * kGiB);  // 32 layers x 2 x 8 x 128 x 2 B a token
  EXPECT_DOUBLE_EQ(shared.kv_cache.base(), 16 * kGiB);
  const MemoryUse copied = memory("deepseek_v3", {.tp = 8}),
                  once = memory("deepseek_v3", {.tp = 8, .dcp = 8}),
                  both = memory("deepseek_v3", {.tp = 8, .cp = 2, .dcp = 8});
  EXPECT_EQ(once.weights, copied.weights);
  EXPECT_DOUBLE_EQ(once.kv_cache.base() * 8, copied.kv_cache.base());
  EXPECT_DOUBLE_EQ(both.kv_cache.base() * 16, copied.kv_cache.base());
}

TEST(ContextParallel, ARankHoldsKeysAndValuesOfALayerThatItGathers) {
  const auto working = [](std::int64_t earlier) {
    return inference_memory(one_layer("llama_3_1_8b"), prefill(8192, earlier, {.cp = 4}))
        .front()
        .working.base();
  };
  EXPECT_DOUBLE_EQ(working(65536) - working(0), 65536.0 * 2 * 8 * 128 * 2);
}

TEST(ContextParallel, CountsWhatAStepIsForOnce) {
  const LlmConfig model = one_layer("llama_3_1_8b");
  const auto useful = [&](InferenceConfig config) { return model_flops(model, config).base(); };
  EXPECT_EQ(useful(prefill(8192, 0, {.cp = 4})), useful(prefill(8192, 0, {})));
  EXPECT_EQ(useful(decode(4, 8191, {.cp = 4})), useful(decode(4, 8191, {})));
}

TEST(ContextParallel, ProgramsOfAllPlansAreSound) {
  for (const ParallelConfig& parallel :
       {ParallelConfig{.tp = 8, .pp = 2, .cp = 2, .dcp = 2, .ep = 16},
        ParallelConfig{.tp = 8, .sp = true, .dp = 2, .cp = 2, .dcp = 4, .ep = 32},
        ParallelConfig{.tp = 8, .dcp = 8, .ep = 8}}) {
    for (const char* name : {"deepseek_v3", "qwen3_235b_a22b"}) {
      LlmConfig model = library_model(name);
      model.layers.erase(model.layers.begin(), model.layers.end() - 2);
      if (model.attention.kind == AttentionKind::kGrouped && parallel.dcp > 2) continue;
      InferenceConfig config;
      config.parallel = parallel;
      config.phase = Phase::kMixed;
      config.batch = {.chunks = {{.tokens = 300, .context = 64}}, .decodes = {{99, 3}, {7, 1}}};
      EXPECT_THAT(verify(build_inference(model, config)), IsEmpty());
    }
  }
}

std::string refusal(const char* model, InferenceConfig config) {
  try {
    require_supported(library_model(model), config);
  } catch (const config::ConfigError& error) {
    return error.what();
  }
  return "";
}

TEST(ContextParallel, SaysWhatIsNotModelled) {
  EXPECT_EQ(refusal("llama_3_1_8b", decode(1, 64, {.cp = 3})), "");
  EXPECT_THAT(refusal("gemma_2_9b", decode(1, 64, {.cp = 2})),
              HasSubstr("parallel.cp: context parallelism of sliding windows"));
  EXPECT_THAT(refusal("llama_3_1_8b", decode(1, 64, {.tp = 8, .dcp = 2})),
              HasSubstr("parallel.dcp: tp = 8 ranks hold 1 copy of each of 8 KV heads"));
  EXPECT_THAT(refusal("qwen3_235b_a22b", decode(1, 64, {.tp = 8, .dcp = 4})),
              HasSubstr("hold 2 copies of each of 4 KV heads, which dcp = 4 ranks cannot share"));
  EXPECT_EQ(refusal("deepseek_v3", decode(1, 64, {.tp = 8, .dcp = 4})), "");
  EXPECT_THAT(refusal("deepseek_v3", decode(1, 64, {.tp = 8, .dcp = 3})),
              HasSubstr("dcp must divide tp"));
  InferenceConfig turns = decode(64, 64, {.dp = 4, .cp = 2, .ep = 8});
  turns.two_batch_overlap = true;
  EXPECT_THAT(refusal("mixtral_8x7b", turns), HasSubstr("knows no context parallelism"));
}

}  // namespace
}  // namespace orrery::context_parallel_test
