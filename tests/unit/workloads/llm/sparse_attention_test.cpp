// SPDX-License-Identifier: Apache-2.0
// DeepSeek sparse attention by hand: the report of DeepSeek-V3.2-Exp, section 2.
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "sim/config/diagnostics.h"
#include "tests/unit/workloads/sparse_models.h"
#include "tests/unit/workloads/step_kernels.h"
#include "workloads/layers/closed_forms.h"
#include "workloads/layers/layers.h"
#include "workloads/layers/rank_parameters.h"
#include "workloads/models/huggingface/huggingface.h"
#include "workloads/steps/figures/memory.h"
#include "workloads/steps/inference/inference.h"

namespace orrery::sparse_attention_test {
namespace {

using test::kernel;

constexpr std::int64_t kHidden = 64, kHeads = 8, kQuery = 24, kLatent = 32, kRope = 8;
constexpr std::int64_t kIndexHeads = 4, kIndexDim = 16, kTopK = 100;
constexpr std::int64_t kKey = kLatent + kRope;

RankWork work_of(Phase phase, std::int64_t sequences, std::int64_t query, std::int64_t context) {
  RankWork work;
  work.batch.phase = phase;
  work.batch.sequences = sequences;
  work.batch.query = query;
  work.batch.context = context;
  return work;
}

/// Work whose prompts go to kernels of sparse attention, however short they are.
RankWork unmasked(RankWork work) {
  work.kernels.set("masks_short_prompts", false);
  return work;
}

StepList mixer_steps(const LlmConfig& model, std::size_t layer, const RankWork& work) {
  return attention_half_forward(model, model.layers[layer], work);
}

bool has(const StepList& list, const std::string& beginning) {
  return std::any_of(list.steps().begin(), list.steps().end(),
                     [&](const Step& step) { return step.name().rfind(beginning, 0) == 0; });
}

// 3 sequences of 1,000 tokens, one new token each: all 3,000 keys of 16 columns in fp8 are scored
// by 4 heads, 100 latents a sequence of 40 columns are read in bf16.
TEST(SparseAttention, ADecodeScoresAllKeysAndReadsTheBest) {
  const LlmConfig model = small_sparse();
  const StepList steps = mixer_steps(model, 0, work_of(Phase::kDecode, 3, 1, 1000));
  const Kernel& scores = kernel(steps, "index scores");
  EXPECT_EQ(scores.precision, Precision::kFp8);
  EXPECT_EQ(scores.matrix_flops.base(), 2.0 * 3000 * kIndexHeads * kIndexDim);
  EXPECT_EQ(scores.read.base(), 3 * kIndexHeads * (kIndexDim + 4) + 3000 * kIndexDim);
  EXPECT_EQ(scores.written.base(), 3000 * 4);
  const Kernel& selection = kernel(steps, "index selection");
  EXPECT_EQ(selection.read.base(), 3000 * 4);
  EXPECT_EQ(selection.written.base(), 3 * kTopK * 4);
  const Kernel& attention = kernel(steps, "attention");
  EXPECT_EQ(attention.matrix_flops.base(), 2.0 * 3 * kTopK * kHeads * (kKey + kLatent));
  EXPECT_EQ(attention.read.base(), 3 * kHeads * kKey * 2 + 3 * kTopK * kKey * 2);
  EXPECT_EQ(attention.written.base(), 3 * kHeads * kLatent * 2);
}

TEST(SparseAttention, WhatIsReadOfTheLatentsStopsGrowingAtTopK) {
  const LlmConfig model = small_sparse();
  const auto attention = [&](std::int64_t context) {
    return kernel(mixer_steps(model, 0, work_of(Phase::kDecode, 3, 1, context)), "attention");
  };
  EXPECT_EQ(attention(100), attention(100000));
  EXPECT_LT(attention(99).read, attention(100).read);
}

// 200 new tokens of one sequence: token i sees i + 1 keys, 20,100 pairs in all, and attends to at
// most 100: 5,050 pairs of the first hundred and 100 each of the others.
TEST(SparseAttention, PromptsAttendToWhatEachTokenChooses) {
  const LlmConfig model = small_sparse();
  const StepList steps = mixer_steps(model, 0, unmasked(work_of(Phase::kPrefill, 1, 200, 200)));
  EXPECT_EQ(kernel(steps, "index scores").matrix_flops.base(),
            2.0 * 20100 * kIndexHeads * kIndexDim);
  EXPECT_EQ(kernel(steps, "attention").matrix_flops.base(),
            2.0 * (5050 + 100 * 100) * kHeads * (kKey + kLatent));
  // Each latent once, although many tokens chose it.
  EXPECT_EQ(kernel(steps, "attention").read.base(), 200 * kHeads * kKey * 2 + 200 * kKey * 2);
  EXPECT_FALSE(has(steps, "key-value up"));
}

TEST(SparseAttention, KernelsWorkOnAllPlacesOfAChoiceAndReadThoseThatAreFilled) {
  const LlmConfig model = small_sparse();
  const auto attention = [&](std::int64_t context) {
    return kernel(mixer_steps(model, 0, work_of(Phase::kDecode, 3, 1, context)), "attention");
  };
  EXPECT_EQ(attention(10).attention.places, kTopK);
  EXPECT_EQ(attention(10).matrix_flops.base(), 2.0 * 3 * 10 * kHeads * (kKey + kLatent));
  EXPECT_EQ(attention(10).read.base(), 3 * kHeads * kKey * 2 + 3 * 10 * kKey * 2);
}

// Rows with no more scores than may be chosen are taken whole.
TEST(SparseAttention, SelectionsOfShortContextsReadNoScores) {
  const LlmConfig model = small_sparse();
  const auto selection = [&](std::int64_t context) {
    return kernel(mixer_steps(model, 0, work_of(Phase::kDecode, 3, 1, context)), "index selection");
  };
  EXPECT_EQ(selection(kTopK).read.base(), 0);
  EXPECT_EQ(selection(kTopK).written.base(), 3 * kTopK * 4);
  EXPECT_EQ(selection(kTopK + 1).read.base(), 3 * (kTopK + 1) * 4);
}

TEST(SparseAttention, ANarrowCacheIsWidenedForPromptsAlone) {
  const LlmConfig model = small_sparse();
  RankWork prompt = unmasked(work_of(Phase::kPrefill, 1, 200, 300)),
           token = work_of(Phase::kDecode, 3, 1, 300);
  EXPECT_FALSE(has(mixer_steps(model, 0, prompt), "cache widening"));
  prompt.formats.kv_precision = token.formats.kv_precision = Precision::kFp8;
  const StepList steps = mixer_steps(model, 0, prompt);
  EXPECT_EQ(kernel(steps, "cache widening").read.base(), 300 * kKey);
  EXPECT_EQ(kernel(steps, "cache widening").written.base(), 2 * 300 * kKey);
  EXPECT_FALSE(kernel(steps, "attention").attention.wide_queries);
  const StepList decode = mixer_steps(model, 0, token);
  EXPECT_FALSE(has(decode, "cache widening"));
  EXPECT_TRUE(kernel(decode, "attention").attention.wide_queries);
}

// SGLang and TensorRT-LLM: latent attention to a context of what was chosen. FlashMLA's kernel has
// caches of 8 bits on Hopper.
TEST(SparseAttention, EnginesMayAttendToAChoiceAsToAShortContext) {
  const LlmConfig model = small_sparse();
  RankWork work = work_of(Phase::kDecode, 3, 1, 1000);
  const auto attention = [&] { return kernel(mixer_steps(model, 0, work), "attention"); };
  EXPECT_EQ(attention().kind, KernelClass::kSparse);
  work.kernels.set("choices_as_contexts", true);
  EXPECT_EQ(attention().kind, KernelClass::kMlaDecode);
  EXPECT_EQ(attention().n, kTopK);
  work.batch.context = 10;
  EXPECT_EQ(attention().n, 10);
  work.formats.kv_precision = Precision::kFp8;
  EXPECT_EQ(attention().kind, KernelClass::kSparse);
  work.formats.mx_products = true;
  EXPECT_EQ(attention().kind, KernelClass::kMlaDecode);
}

// 40 multiply-adds of a head for each pair, absorbed 72 for each of 100 places: up to 180 keys on
// average.
TEST(SparseAttention, ShortPromptsSeeAllKeysAndMaskThoseTheyHaveNotChosen) {
  const LlmConfig model = small_sparse();
  const auto expands = [&](std::int64_t query) {
    const StepList steps = mixer_steps(model, 0, work_of(Phase::kPrefill, 1, query, query));
    EXPECT_TRUE(has(steps, "index selection"));
    return has(steps, "key-value up");
  };
  EXPECT_TRUE(expands(358));
  EXPECT_FALSE(expands(360));
}

TEST(SparseAttention, PromptsThatSeeNoMoreThanTheyMayChooseRunAsLatentAttention) {
  const LlmConfig model = small_sparse();
  const StepList steps = mixer_steps(model, 0, work_of(Phase::kPrefill, 3, 60, 100));
  EXPECT_TRUE(has(steps, "key-value up"));
  EXPECT_TRUE(has(steps, "index cache write"));
  EXPECT_FALSE(has(steps, "index scores"));
  EXPECT_TRUE(has(mixer_steps(model, 0, work_of(Phase::kPrefill, 3, 60, 101)), "index scores"));
}

TEST(SparseAttention, LayersThatShareAChoiceHaveNoIndexer) {
  const LlmConfig model = small_sparse();
  const StepList own = mixer_steps(model, 0, work_of(Phase::kDecode, 3, 1, 1000));
  const StepList shared = mixer_steps(model, 1, work_of(Phase::kDecode, 3, 1, 1000));
  EXPECT_FALSE(has(shared, "index"));
  EXPECT_EQ(kernel(own, "attention"), kernel(shared, "attention"));
  const auto weights = [&](std::size_t layer, int tp) {
    return layer_halves(model, model.layers[layer], {.tp = tp, .sp = tp > 1}).attention;
  };
  // Queries from their latents, one key and weights from the input, a LayerNorm of keys; whole on
  // every rank.
  const std::int64_t indexer =
      kQuery * kIndexHeads * kIndexDim + kHidden * (kIndexDim + kIndexHeads) + 2 * kIndexDim;
  for (const int tp : {1, 4}) {
    EXPECT_EQ(weights(0, tp).whole - weights(1, tp).whole, indexer);
    EXPECT_EQ(weights(0, tp).split, weights(1, tp).split);
  }
  EXPECT_EQ(weights(0, 1).sixteen_bit - weights(1, 1).sixteen_bit,
            kHidden * kIndexHeads + 2 * kIndexDim);
}

TEST(SparseAttention, KeysOfTheIndexerAreCachedInItsFormat) {
  const LlmConfig model = small_sparse();
  InferenceConfig config;
  config.micro_batch = 5;
  config.kv_length = 99;
  const auto cache = [&] { return inference_memory(model, config)[0].kv_cache.base(); };
  EXPECT_EQ(cache(), 5 * 100 * (2 * kKey * 2 + kIndexDim));
  config.index_precision = Precision::kBf16;
  EXPECT_EQ(cache(), 5 * 100 * (2 * kKey * 2 + 2 * kIndexDim));
  config.kv_precision = Precision::kFp8;
  EXPECT_EQ(cache(), 5 * 100 * (2 * kKey + 2 * kIndexDim));
}

// Scores of all keys, 4 x 16 a key and half of 1,000 on average; latent attention to at most 100:
// 100 - 100^2 / 2,000 = 95 keys, 40 columns of queries and keys and 16 of values for each of 8
// heads.
TEST(SparseAttention, FlopsOfAModelCountChosenKeysAndScoresOfAll) {
  LlmConfig model = small_sparse();
  const auto flops = [&](std::size_t layer) {
    LlmConfig one = model;
    one.layers = {model.layers[layer]};
    return model_flops_per_token(one, 1000, true).base() -
           2.0 * static_cast<double>(count_parameters(one).active_matrices);
  };
  const double heads = kHeads * (16 + kRope + 16);
  EXPECT_DOUBLE_EQ(flops(1), 2 * heads * 95);
  EXPECT_DOUBLE_EQ(flops(0) - flops(1), 2.0 * kIndexHeads * kIndexDim * 500);
}

nlohmann::json glm() {
  return {{"model_type", "glm_moe_dsa"},  {"hidden_size", 64},
          {"vocab_size", 1000},           {"num_hidden_layers", 3},
          {"num_attention_heads", 8},     {"q_lora_rank", 24},
          {"kv_lora_rank", 32},           {"qk_nope_head_dim", 16},
          {"qk_rope_head_dim", 8},        {"v_head_dim", 16},
          {"intermediate_size", 96},      {"n_routed_experts", 8},
          {"num_experts_per_tok", 2},     {"moe_intermediate_size", 32},
          {"first_k_dense_replace", 1},   {"index_n_heads", 4},
          {"index_head_dim", 16},         {"index_topk", 100},
          {"moe_router_dtype", "float32"}};
}

TEST(Glm, SharesChoicesWhereItsListSays) {
  nlohmann::json file = glm();
  EXPECT_EQ(from_huggingface(file, "m").layers[2].mixer, MixerKind::kSparse);
  file["indexer_types"] = {"full", "shared", "full"};
  const LlmConfig model = from_huggingface(file, "m");
  EXPECT_EQ(model.layers[1].mixer, MixerKind::kSharedSparse);
  EXPECT_EQ(model.layers[2].mixer, MixerKind::kSparse);
  file["indexer_types"] = {"shared", "full", "full"};
  EXPECT_THROW(from_huggingface(file, "m"), config::ConfigError);
  file["indexer_types"] = {"full", "none", "full"};
  EXPECT_THROW(from_huggingface(file, "m"), UnsupportedModel);
  file["indexer_types"] = {"full"};
  EXPECT_THROW(from_huggingface(file, "m"), config::ConfigError);
}

TEST(Glm, HasExpertsWhereItsListSays) {
  nlohmann::json file = glm();
  EXPECT_FALSE(from_huggingface(file, "m").layers[0].moe);
  file["mlp_layer_types"] = {"sparse", "dense", "sparse"};
  EXPECT_TRUE(from_huggingface(file, "m").layers[0].moe);
  EXPECT_FALSE(from_huggingface(file, "m").layers[1].moe);
}

}  // namespace
}  // namespace orrery::sparse_attention_test
