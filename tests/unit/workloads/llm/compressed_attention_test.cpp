// SPDX-License-Identifier: Apache-2.0
// Compressed attention and hyper-connections of DeepSeek-V4, block-sparse attention of MiniMax-M3
// and delta attention of Kimi by hand, and what all of them have in common.
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "sim/config/diagnostics.h"
#include "tests/unit/workloads/example_models.h"
#include "tests/unit/workloads/sparse_models.h"
#include "tests/unit/workloads/step_kernels.h"
#include "workloads/layers/closed_forms.h"
#include "workloads/layers/layers.h"
#include "workloads/layers/rank_parameters.h"
#include "workloads/models/huggingface/huggingface.h"
#include "workloads/steps/figures/memory.h"
#include "workloads/steps/inference/inference.h"

namespace orrery::compressed_attention_test {
namespace {

using test::kernel;

RankWork work_of(Phase phase, std::int64_t sequences, std::int64_t query, std::int64_t context,
                 int tp = 1) {
  RankWork work;
  work.batch.phase = phase;
  work.batch.sequences = sequences;
  work.batch.query = query;
  work.batch.context = context;
  work.split.tp = tp;
  return work;
}

bool has(const StepList& list, const std::string& beginning) {
  return std::any_of(list.steps().begin(), list.steps().end(),
                     [&](const Step& step) { return step.name().rfind(beginning, 0) == 0; });
}

StepList mixer_steps(const LlmConfig& model, std::size_t layer, const RankWork& work) {
  return attention_half_forward(model, model.layers[layer], work);
}

TEST(BlockSparseAttention, ADecodeReadsTheBlocksThatEachGroupChooses) {
  const LlmConfig model = small_block_sparse();
  const StepList steps = mixer_steps(model, 1, work_of(Phase::kDecode, 3, 1, 1600));
  const Kernel& scores = kernel(steps, "index scores");
  EXPECT_EQ(scores.matrix_flops.base(), 2.0 * 3 * 1600 * 4 * 16);
  EXPECT_EQ(scores.read.base(), 3 * 4 * 16 * 2 + 3 * 1600 * 16 * 2);
  // The largest score of 100 blocks, for each of four groups.
  EXPECT_EQ(scores.written.base(), 3 * 100 * 4 * 4);
  EXPECT_EQ(kernel(steps, "index selection").written.base(), 3 * 3 * 4 * 4);
  const Kernel& attention = kernel(steps, "attention");
  EXPECT_EQ(attention.matrix_flops.base(), 2.0 * 3 * 48 * 8 * 16);
  EXPECT_EQ(attention.read.base(), 3 * 8 * 8 * 2 + 3 * 48 * 4 * 16 * 2);
  // Index queries of each KV head and one index key come with queries, keys and values.
  EXPECT_EQ(kernel(steps, "qkv").n, (8 + 2 * 4) * 8 + 5 * 16);
}

TEST(BlockSparseAttention, IndexQueriesAreSplitWithTheirGroupsAndTheKeyIsWhole) {
  const LlmConfig model = small_block_sparse();
  const auto weights = [&](std::size_t layer, int tp) {
    return layer_halves(model, model.layers[layer], {.tp = tp, .sp = tp > 1}).attention;
  };
  for (const int tp : {1, 2, 4})
    EXPECT_EQ(weights(1, tp).split - weights(0, tp).split, 64 * 4 / tp * 16);
  EXPECT_EQ(weights(1, 4).whole - weights(0, 4).whole, 64 * 16 + 2 * 16);
}

// 2 sequences of 128 tokens in chunks of 64: scores of queries and keys in the 6 of 16 blocks below
// the diagonal; w and u; states; outputs.
TEST(KimiDelta, PromptsMultiplyBlocksBelowTheDiagonal) {
  const LlmConfig model = small_kimi();
  const StepList steps = mixer_steps(model, 0, work_of(Phase::kPrefill, 2, 128, 128));
  const double tokens = 256, heads = 4;
  EXPECT_DOUBLE_EQ(kernel(steps, "delta key products").matrix_flops.base(),
                   tokens * heads * 2 * 2 * 64 * 16 * 6 / 16);
  EXPECT_DOUBLE_EQ(kernel(steps, "delta outputs").matrix_flops.base(),
                   tokens * heads * 2 * 16 * (16 + 64));
  EXPECT_DOUBLE_EQ(kernel(steps, "delta decays").written.base(), tokens * (64 + 4) * 4);
  EXPECT_DOUBLE_EQ(kernel(steps, "delta states").matrix_flops.base(),
                   tokens * heads * 2 * 2 * 16 * 16);
}

TEST(KimiDelta, ADecodeReadsADecayForEachColumnOfKeys) {
  const LlmConfig model = small_kimi();
  const StepList steps = mixer_steps(model, 0, work_of(Phase::kDecode, 3, 1, 1000));
  EXPECT_EQ(kernel(steps, "delta state update").read.base(),
            3 * (4 * 16 * 16 * 4 + (3 * 64 + 64 + 4) * 2));
  EXPECT_EQ(layer_halves(model, model.layers[0], {}).attention.total(),
            64 * (4 * 64 + 4 + 16) + 16 * 64 + 64 * 64 + 3 * 64 * 4 + 4 + 64 + 16 + 64);
}

TEST(AttentionResiduals, EachHalfReadsTheBlocksBefore) {
  LlmConfig model = small_llama(2);
  model.residual_block = 1;
  model.layers[1].sources = 3;
  const StepList steps = layer_forward(model, model.layers[1], work_of(Phase::kDecode, 5, 1, 100));
  EXPECT_EQ(kernel(steps, "residual mixture").read.base(), 5 * 3 * 64 * 2);
  EXPECT_EQ(kernel(steps, "residual mixture").written.base(), 5 * 64 * 2);
  const LlmConfig plain = small_llama(2);
  // A query and a norm in front of each of four halves and the final norm.
  EXPECT_EQ(count_parameters(model).total - count_parameters(plain).total, 5 * 2 * 64);
}

TEST(CompressedAttention, SeesAWindowAndTheEntriesOfItsKind) {
  const LlmConfig model = small_compressed();
  const auto entries = [&](std::size_t layer) {
    const Kernel attention =
        kernel(mixer_steps(model, layer, work_of(Phase::kDecode, 3, 1, 800)), "attention");
    return attention.matrix_flops.base() / (2.0 * 3 * 8 * 64);
  };
  EXPECT_EQ(entries(0), 10);
  EXPECT_EQ(entries(1), 10 + 800 / 8);
  EXPECT_EQ(entries(2), 10 + 6);
  const StepList chosen = mixer_steps(model, 2, work_of(Phase::kDecode, 3, 1, 800));
  EXPECT_EQ(kernel(chosen, "index scores").matrix_flops.base(), 2.0 * 3 * 400 * 4 * 16);
  EXPECT_FALSE(has(mixer_steps(model, 1, work_of(Phase::kDecode, 3, 1, 800)), "index"));
  // Outputs of 8 heads of 32 in four groups.
  const Kernel& groups = kernel(chosen, "value groups");
  EXPECT_EQ(groups.batch, 4);
  EXPECT_EQ(groups.k, 64);
  EXPECT_EQ(groups.n, 12);
}

TEST(CompressedAttention, CachesAnEntryForSeveralTokens) {
  const LlmConfig model = small_compressed();
  InferenceConfig config;
  config.micro_batch = 5;
  config.kv_length = 799;
  const auto cache = [&](std::int64_t length) {
    config.kv_length = length - 1;
    return inference_memory(model, config)[0].kv_cache.base();
  };
  // 32 columns in bf16 for 8 and for 2 tokens, 16 of the indexer's in fp8 for 2.
  EXPECT_EQ(cache(1600) - cache(800), 5 * 800 * (32 * 2 / 8 + 32 * 2 / 2 + 16 / 2));
  // Windows; fp32 of what does not fill an entry: 8 tokens of twice 32, and twice 2 tokens of four
  // times 32 and 16.
  const double states = 3 * 10 * 32 * 2 + 4 * 8 * 2 * 32 + 4 * 2 * 2 * 4 * (32 + 16);
  EXPECT_EQ(2 * cache(800) - cache(1600), 5 * states);
}

// The report of DeepSeek-V4 has 10 % and 7 % of the cache of V3.2 at 1M tokens for Pro and Flash;
// in its formats, here in 16 bits with indexers in fp8.
TEST(CompressedAttention, KeepsATenthOfTheCacheOfDeepSeekV32) {
  const auto bytes = [](const char* name) {
    InferenceConfig config;
    config.micro_batch = 1;
    config.kv_length = (1 << 20) - 1;
    return inference_memory(library_model(name), config)[0].kv_cache.base();
  };
  const double before = bytes("deepseek_v3_2");
  EXPECT_NEAR(bytes("deepseek_v4_pro") / before, 0.10, 0.02);
  EXPECT_NEAR(bytes("deepseek_v4_flash") / before, 0.07, 0.015);
}

TEST(CompressedAttention, WeightsOfARankAreItsShareOfAll) {
  const LlmConfig model = small_compressed();
  const auto weights = [&](std::size_t layer, int tp) {
    return layer_halves(model, model.layers[layer], {.tp = tp, .sp = tp > 1}).attention;
  };
  // Queries, four groups of 64 x 12, 48 x 64 back, a sink a head.
  const std::int64_t split = 24 * 256 + 256 * 12 + 48 * 64 + 8;
  const std::int64_t whole = 64 * (24 + 32) + 24 + 32 + 64;
  for (const int tp : {1, 2, 4}) {
    EXPECT_EQ(tp * weights(0, tp).split, split);
    EXPECT_EQ(weights(0, tp).whole, whole);
  }
  // Projections with gates, places of tokens, a norm.
  EXPECT_EQ(weights(1, 4).whole - whole, 64 * 2 * 32 + 8 * 32 + 32);
  EXPECT_EQ(weights(2, 4).whole - whole,
            64 * 4 * (32 + 16) + 2 * 2 * (32 + 16) + 32 + 16 + 24 * 4 * 16 + 64 * 4);
}

TEST(HyperConnections, MixTheStreamsIntoEachHalfAndOutOfIt) {
  LlmConfig model = small_llama(1);
  const std::int64_t plain = count_parameters(model).total;
  model.residual_streams = 4;
  model.sinkhorn_steps = 20;
  const StepList steps = layer_forward(model, model.layers[0], work_of(Phase::kDecode, 5, 1, 100));
  EXPECT_EQ(kernel(steps, "hyper connection weights").matrix_flops.base(), 2.0 * 5 * 24 * 256);
  EXPECT_EQ(kernel(steps, "hyper connection in").read.base(), 5 * 4 * 64 * 2);
  EXPECT_EQ(kernel(steps, "hyper connection out").read.base(), 5 * 5 * 64 * 2);
  EXPECT_EQ(kernel(steps, "hyper connection out").written.base(), 5 * 4 * 64 * 2);
  // Norms read what was mixed, and no residual.
  EXPECT_EQ(kernel(steps, "attention norm").read.base(), 5 * 64 * 2);
  // Weights, biases and scales of two halves, and of what is in front of the head.
  EXPECT_EQ(count_parameters(model).total - plain, 2 * (24 * 256 + 24 + 3) + 4 * 256 + 4 + 1);
}

// The streams are weighed and added up in front of the final norm; mixtures of blocks have a last.
TEST(ResidualEnds, AreReadOnceInFrontOfTheHead) {
  LlmConfig streams = small_llama(1);
  streams.residual_streams = 4;
  const StepList end = head_forward(streams, work_of(Phase::kDecode, 5, 1, 100));
  EXPECT_EQ(kernel(end, "residual end weights").matrix_flops.base(), 2.0 * 5 * 4 * 256);
  EXPECT_EQ(kernel(end, "residual end").read.base(), 5 * 4 * 64 * 2);
  LlmConfig blocks = small_llama(2);
  blocks.residual_block = 1;
  blocks.layers[1].sources = 3;
  EXPECT_EQ(
      kernel(head_forward(blocks, work_of(Phase::kDecode, 5, 1, 100)), "residual end").read.base(),
      5 * 3 * 64 * 2);
}

TEST(AllModels, RanksHaveTheParametersThatAreCounted) {
  for (const char* name :
       {"qwen3_next_80b_a3b", "qwen3_5_27b", "deepseek_v3_2", "glm_5_2", "minimax_m3", "kimi_k3",
        "deepseek_v4_flash", "deepseek_v4_pro", "nemotron_3_super"}) {
    const LlmConfig model = library_model(name);
    EXPECT_EQ(stage_parameters(model, {}, 0).total(), count_parameters(model).total) << name;
  }
}

nlohmann::json with(nlohmann::json base, const nlohmann::json& changes) {
  base.merge_patch(changes);
  return base;
}

TEST(DeepSeekV4, RefusesRatiosThatItsCodeDoesNotKnow) {
  const nlohmann::json file = {{"model_type", "deepseek_v4"},
                               {"hidden_size", 64},
                               {"vocab_size", 1000},
                               {"num_hidden_layers", 3},
                               {"num_attention_heads", 8},
                               {"num_key_value_heads", 1},
                               {"head_dim", 32},
                               {"q_lora_rank", 24},
                               {"qk_rope_head_dim", 8},
                               {"o_groups", 4},
                               {"o_lora_rank", 12},
                               {"sliding_window", 10},
                               {"index_n_heads", 4},
                               {"index_head_dim", 16},
                               {"index_topk", 6},
                               {"n_routed_experts", 8},
                               {"num_experts_per_tok", 2},
                               {"moe_intermediate_size", 32},
                               {"n_shared_experts", 1},
                               {"num_hash_layers", 1},
                               {"hc_mult", 4},
                               {"compress_rope_theta", 160000},
                               {"compress_ratios", {0, 4, 128, 0}}};
  const LlmConfig model = from_huggingface(file, "m");
  EXPECT_EQ(model.layers[0].mixer, MixerKind::kWindowedKey);
  EXPECT_EQ(model.layers[1].mixer, MixerKind::kCompressedSparse);
  EXPECT_EQ(model.layers[2].mixer, MixerKind::kCompressed);
  EXPECT_TRUE(model.layers[0].hashed);
  EXPECT_FALSE(model.layers[1].hashed);
  EXPECT_THROW(from_huggingface(with(file, {{"compress_ratios", {0, 8, 128}}}), "m"),
               UnsupportedModel);
  EXPECT_THROW(from_huggingface(with(file, {{"compress_ratios", {0, 4}}}), "m"),
               config::ConfigError);
  EXPECT_THROW(from_huggingface(with(file, {{"expert_dtype", "int3"}}), "m"), UnsupportedModel);
}

}  // namespace
}  // namespace orrery::compressed_attention_test
