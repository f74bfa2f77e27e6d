// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "workloads/layers/rank_parameters.h"
#include "workloads/models/llm_config.h"

namespace orrery::parameters_test {
namespace {

/// hidden 8, vocabulary 10, 2 heads of 4 with 1 head of keys and values, MLP of 16, 2 layers.
LlmConfig tiny() {
  LlmConfig model;
  model.hidden = 8;
  model.vocabulary = 10;
  model.attention.heads = 2;
  model.attention.kv_heads = 1;
  model.attention.head_dim = 4;
  model.mlp.intermediate = 16;
  model.layers.resize(2);
  return model;
}

TEST(ParameterCount, OfAGroupedModelIsTheSumByHand) {
  const ParameterCount count = count_parameters(tiny());
  EXPECT_EQ(count.embedding, 80);
  EXPECT_EQ(count.head, 80);
  // q 8x8 + k 8x4 + v 8x4 + o 8x8
  EXPECT_EQ(count.attention_per_layer, 192);
  EXPECT_EQ(count.mlp_per_dense_layer, 3 * 8 * 16);
  EXPECT_EQ(count.norms_per_layer, 16);
  EXPECT_EQ(count.final_norm, 8);
  EXPECT_EQ(count.total, 80 + 80 + 2 * (192 + 384 + 16) + 8);
  EXPECT_EQ(count.active, count.total);
  EXPECT_EQ(count.active_matrices, 80 + 2 * (192 + 384));
}

TEST(ParameterCount, BiasesNormsSinksAndPositionsAddTheirOwnElementsOnly) {
  LlmConfig model = tiny();
  const std::int64_t plain = count_parameters(model).attention_per_layer;
  model.attention.qkv_bias = true;  // 8 + 4 + 4
  EXPECT_EQ(count_parameters(model).attention_per_layer, plain + 16);
  model.attention.output_bias = true;  // 8
  EXPECT_EQ(count_parameters(model).attention_per_layer, plain + 24);
  model.attention.sinks = true;  // 2 heads
  EXPECT_EQ(count_parameters(model).attention_per_layer, plain + 26);
  model.attention.qk_norm = true;  // 4 + 4
  EXPECT_EQ(count_parameters(model).attention_per_layer, plain + 34);
  model.attention.qk_norm_all_heads = true;  // 8 + 4
  EXPECT_EQ(count_parameters(model).attention_per_layer, plain + 38);
  model.mlp.bias = true;  // 16 + 16 + 8
  EXPECT_EQ(count_parameters(model).mlp_per_dense_layer, 384 + 40);
  model.norm_bias = true;
  EXPECT_EQ(count_parameters(model).norms_per_layer, 32);
  EXPECT_EQ(count_parameters(model).final_norm, 16);
  model.positions = 5;
  EXPECT_EQ(count_parameters(model).embedding, 15 * 8);
  EXPECT_EQ(count_parameters(model).active_matrices, count_parameters(tiny()).active_matrices);
}

TEST(ParameterCount, BiasesAndNormsOfAttentionAreNeverQuantised) {
  LlmConfig model = tiny();
  const std::int64_t plain = layer_parameters(model, model.layers[0], {}).sixteen_bit;
  model.attention.qkv_bias = true;     // 8 + 4 + 4
  model.attention.output_bias = true;  // 8
  model.attention.qk_norm = true;      // 4 + 4
  EXPECT_EQ(layer_parameters(model, model.layers[0], {}).sixteen_bit, plain + 32);
}

TEST(ParameterCount, TiedEmbeddingsCountOnceButAreMultipliedWith) {
  LlmConfig model = tiny();
  model.tied_embeddings = true;
  EXPECT_EQ(count_parameters(model).total, count_parameters(tiny()).total - 80);
  EXPECT_EQ(count_parameters(model).active_matrices, count_parameters(tiny()).active_matrices);
}

TEST(ParameterCount, OfLatentAttentionIsTheSumByHand) {
  LlmConfig model = tiny();
  AttentionConfig& a = model.attention;
  a.kind = AttentionKind::kLatent;
  a.kv_lora_rank = 6;
  a.qk_nope_head_dim = 4;
  a.qk_rope_head_dim = 2;
  a.v_head_dim = 3;
  // q 8 x 2(4+2) = 96; kv down 8 x (6+2) = 64, norm 6; kv up 6 x 2(4+3) = 84; o 2x3 x 8 = 48
  EXPECT_EQ(count_parameters(model).attention_per_layer, 96 + 64 + 6 + 84 + 48);
  EXPECT_EQ(a.kv_elements_per_token(), 8);
  a.q_lora_rank = 5;  // q down 8 x 5, norm 5, up 5 x 12 instead of 96
  EXPECT_EQ(count_parameters(model).attention_per_layer, 40 + 5 + 60 + 64 + 6 + 84 + 48);
}

TEST(ParameterCount, ActiveExpertsAreThoseThatATokenMeets) {
  LlmConfig model = tiny();
  model.layers[1].moe = true;
  model.moe = {.experts = 4,
               .experts_per_token = 2,
               .intermediate = 3,
               .shared_experts = 1,
               .shared_intermediate = 5,
               .router_bias = true,
               .shared_gate = true};
  const ParameterCount count = count_parameters(model);
  // router 8x4 + bias 4, experts 3x8x3 each, shared 3x8x5, its gate 8
  EXPECT_EQ(count.moe_per_layer, 36 + 4 * 72 + 120 + 8);
  EXPECT_EQ(count.active_moe_per_layer, 36 + 2 * 72 + 120 + 8);
  EXPECT_EQ(count.total - count.active, 2 * 72);
  EXPECT_EQ(count.total, 80 + 80 + 2 * (192 + 16) + 384 + count.moe_per_layer + 8);
}

TEST(ParameterCount, IsTheSameWithWindowsAndMtpModules) {
  LlmConfig model = tiny();
  model.layers[0].window = 128;
  model.mtp_layers = 1;
  EXPECT_EQ(count_parameters(model).total, count_parameters(tiny()).total);
}

TEST(AttentionConfig, CachesOneKeyAndOneValueOfEachKvHead) {
  EXPECT_EQ(tiny().attention.kv_elements_per_token(), 2 * 1 * 4);
}

}  // namespace
}  // namespace orrery::parameters_test
