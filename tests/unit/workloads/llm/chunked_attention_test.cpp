// SPDX-License-Identifier: Apache-2.0
#include "workloads/layers/attention/chunked_attention.h"

#include <gtest/gtest.h>

#include "tests/unit/workloads/example_models.h"
#include "workloads/layers/closed_forms.h"
#include "workloads/layers/parts/attention_kernels.h"
#include "workloads/steps/figures/memory.h"
#include "workloads/steps/figures/statistics.h"
#include "workloads/steps/inference/inference.h"

namespace orrery::chunked_attention_test {
namespace {

AttentionPart prompt(std::int64_t query, std::int64_t context, std::int64_t sequences = 1) {
  return {Phase::kPrefill, sequences, query, context, {}, true};
}

/// Pairs of a prompt, token by token: token i sees those from the start of its chunk.
double pairs_by_hand(std::int64_t query, std::int64_t context, std::int64_t chunk) {
  double pairs = 0;
  for (std::int64_t i = context - query; i < context; ++i) pairs += double(i % chunk + 1);
  return pairs;
}

double pairs_of(const AttentionPart& part) {
  PromptSum sum;
  for (const Prompts& prompts : part.prompts) sum.add(prompts);
  if (part.prompts.empty()) sum.add({part.sequences, part.query, part.context});
  return sum.pairs;
}

TEST(ChunkedAttention, PiecesOfAPromptHaveThePairsOfEveryToken) {
  for (const std::int64_t chunk : {4, 16}) {
    for (std::int64_t earlier = 0; earlier < 20; ++earlier) {
      for (std::int64_t query = 1; query < 40; ++query) {
        const AttentionPart pieces = in_chunks(prompt(query, earlier + query), chunk);
        EXPECT_DOUBLE_EQ(pairs_of(pieces), pairs_by_hand(query, earlier + query, chunk))
            << chunk << " " << earlier << " " << query;
      }
    }
  }
}

TEST(ChunkedAttention, APromptWithinOneChunkIsAsItWas) {
  EXPECT_EQ(in_chunks(prompt(12, 12, 3), 16), prompt(12, 12, 3));
  EXPECT_EQ(in_chunks(prompt(4, 16, 3), 16), prompt(4, 16, 3));
}

TEST(ChunkedAttention, ADecodeSeesItsChunkUpToItself) {
  EXPECT_EQ(keys_in_chunk(1, 16), 1);
  EXPECT_EQ(keys_in_chunk(16, 16), 16);
  EXPECT_EQ(keys_in_chunk(17, 16), 1);
  EXPECT_EQ(keys_in_chunk(40, 16), 8);
  const AttentionPart decode{Phase::kDecode, 2, 1, 30, {20, 40}, true};
  const AttentionPart seen = in_chunks(decode, 16);
  EXPECT_EQ(seen.contexts, (std::vector<std::int64_t>{4, 8}));
  EXPECT_EQ(seen.context, 6);
}

TEST(ChunkedAttention, SequencesOfWhichTheMeanIsKnownStandInTheMiddle) {
  EXPECT_EQ(keys_in_chunk(10, 16, ChunkPhase::kMiddle), 10);
  EXPECT_EQ(keys_in_chunk(16, 16, ChunkPhase::kMiddle), 16);
  EXPECT_EQ(keys_in_chunk(17, 16, ChunkPhase::kMiddle), 9);
  EXPECT_EQ(keys_in_chunk(1000, 16, ChunkPhase::kMiddle), 9);
}

TEST(ChunkedAttention, MeanKeysAreHalfOfEachChunk) {
  EXPECT_DOUBLE_EQ(mean_keys_in_chunks(16, 16, true), 8);
  EXPECT_DOUBLE_EQ(mean_keys_in_chunks(160, 16, true), 8);
  EXPECT_DOUBLE_EQ(mean_keys_in_chunks(24, 16, true), (128 + 32) / 24.0);
  EXPECT_DOUBLE_EQ(mean_keys_in_chunks(32, 16, false), 16);
}

LlmConfig chunked_llama(std::int64_t chunk) {
  LlmConfig model = small_llama(4);
  for (LayerConfig& layer : model.layers) layer.chunk = chunk;
  return model;
}

TEST(ChunkedAttention, StepsAndClosedFormsCountTheSame) {
  // 4 layers x 8 heads x 4 x 8 FLOPs a key; matrices as in DecodeExecutesTheModelFlops.
  InferenceConfig decode;
  decode.micro_batch = 3;
  decode.kv_length = 39;  // the 40th token is the 8th of its chunk
  const LlmConfig model = chunked_llama(16);
  const double expected = 2 * 3 * (4 * 49152.0 + 64 * 96) + 3.0 * 4 * 8 * 8 * 32;
  EXPECT_DOUBLE_EQ(program_statistics(build_inference(model, decode)).matrix_flops().base(),
                   expected);
  EXPECT_DOUBLE_EQ(model_flops(model, decode).base(), expected);
  InferenceConfig prefill;
  prefill.phase = Phase::kPrefill;
  prefill.micro_batch = 1;
  prefill.sequence = 40;
  const double linear = 2 * (40 * 4 * 49152.0 + 64 * 96);
  EXPECT_DOUBLE_EQ(program_statistics(build_inference(model, prefill)).matrix_flops().base(),
                   linear + 4 * 8 * (136 + 136 + 36) * 32.0);
  EXPECT_DOUBLE_EQ(model_flops(model, prefill).base(), linear + 4 * 8 * (128 + 128 + 32) * 32.0);
}

TEST(ChunkedAttention, TheCacheKeepsAChunkAtMost) {
  InferenceConfig decode;
  decode.micro_batch = 3;
  const auto cache = [&](std::int64_t context) {
    decode.kv_length = context - 1;
    return inference_memory(chunked_llama(16), decode).front().kv_cache.base();
  };
  // 4 layers x 2 x 4 heads x 8 elements of 2 bytes.
  EXPECT_DOUBLE_EQ(cache(10), 3 * 10 * 512.0);
  EXPECT_DOUBLE_EQ(cache(16), 3 * 16 * 512.0);
  EXPECT_DOUBLE_EQ(cache(400), 3 * 16 * 512.0);
}

TEST(ChunkedAttention, AnswersTakeTheSumOverTheirTokens) {
  const LlmConfig model = chunked_llama(16);
  const AnswerFlops answer(model);
  // 24 tokens of prompt, 9 of answer, of which the last is not computed on: 32 tokens, two chunks.
  // 4 layers x 8 heads x 16 multiply-adds a key, of which a chunk has half of 16 squared.
  const double keys = 4.0 * 8 * 16 * (2 * 128);
  EXPECT_DOUBLE_EQ(answer.of(24, 0, 9).base(), 2 * (32 * 4 * 49152.0 + 9 * 64 * 96 + keys));
}

}  // namespace
}  // namespace orrery::chunked_attention_test
