// SPDX-License-Identifier: Apache-2.0
#include "host/priority_shapes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "host/sweeps.h"

namespace orrery::measure::priority_shapes_test {
namespace {

using testing::ElementsAre;

constexpr double kMostFlops = 9e12, kMostBytes = 8e9;

nlohmann::json published(const std::string& model) {
  std::ifstream file(std::string(ORRERY_SOURCE_DIR) + "/configs/models/hf/" + model + ".json");
  return nlohmann::json::parse(file);
}

std::int64_t first_of(const nlohmann::json& config, const std::vector<const char*>& keys) {
  for (const char* key : keys) {
    if (config.contains(key)) return config.at(key).get<std::int64_t>();
  }
  return 0;
}

/// Index of the model that has a weight (n, k), among layers and heads; -1 for none.
int model_of(const GemmShape& shape) {
  const std::vector<PriorityModel>& models = priority_models();
  for (std::size_t i = 0; i < models.size(); ++i) {
    std::vector<GemmShape> weights = layer_weights(models[i]);
    if (models[i].vocabulary > 0) {
      weights.push_back({0, models[i].vocabulary / models[i].parallel, models[i].hidden});
    }
    const GemmShape weight{0, shape.n, shape.k};
    if (std::find(weights.begin(), weights.end(), weight) != weights.end()) {
      return static_cast<int>(i);
    }
  }
  return -1;
}

int model_of(const AttentionHeads& heads) {
  const std::vector<PriorityModel>& models = priority_models();
  for (std::size_t i = 0; i < models.size(); ++i) {
    const AttentionHeads rank = models[i].rank_heads();
    if (std::tie(rank.heads, rank.kv_heads, rank.head_dim) ==
        std::tie(heads.heads, heads.kv_heads, heads.head_dim)) {
      return static_cast<int>(i);
    }
  }
  return -1;
}

/// Models in the order in which shapes reach them; a model that comes twice is there twice.
template <class Shapes, class ModelOf>
std::vector<int> order_of(const Shapes& shapes, const ModelOf& model) {
  std::vector<int> order;
  for (const auto& shape : shapes) {
    if (order.empty() || order.back() != model(shape)) order.push_back(model(shape));
  }
  return order;
}

TEST(PriorityModels, AreFiveInTheOrderOfTheirWeight) {
  std::vector<std::string> names;
  for (const PriorityModel& model : priority_models()) names.emplace_back(model.name);
  EXPECT_THAT(names, ElementsAre("llama_3_1_8b", "llama_3_1_70b", "qwen3_30b_a3b", "gpt_oss_20b",
                                 "deepseek_v3"));
}

TEST(PriorityModels, HaveTheWidthsOfTheirPublishedConfigurations) {
  for (const PriorityModel& model : priority_models()) {
    const nlohmann::json config = published(model.name);
    const bool latent = config.contains("kv_lora_rank");
    const bool mixture = model.experts.experts > 0;
    EXPECT_EQ(model.hidden, first_of(config, {"hidden_size"})) << model.name;
    EXPECT_EQ(model.experts.experts,
              first_of(config, {"n_routed_experts", "num_local_experts", "num_experts"}));
    EXPECT_EQ(model.experts.top_k, first_of(config, {"num_experts_per_tok"}));
    const std::int64_t ffn = first_of(config, {"moe_intermediate_size", "intermediate_size"});
    EXPECT_EQ(model.experts.ffn, mixture ? ffn : 0) << model.name;
    const std::int64_t shared = ffn * first_of(config, {"n_shared_experts"});
    EXPECT_EQ(model.ffn, mixture ? shared : ffn) << model.name;
    EXPECT_EQ(model.heads.heads, latent ? 0 : first_of(config, {"num_attention_heads"}));
    if (latent) continue;
    EXPECT_EQ(model.vocabulary, first_of(config, {"vocab_size"})) << model.name;
    EXPECT_EQ(model.heads.kv_heads, first_of(config, {"num_key_value_heads"})) << model.name;
    const std::int64_t head_dim = first_of(config, {"head_dim"});
    EXPECT_EQ(model.heads.head_dim, head_dim > 0 ? head_dim : model.hidden / model.heads.heads);
  }
}

TEST(PriorityModels, LatentWeightsFollowTheRanksOfDeepSeekV3) {
  const nlohmann::json config = published("deepseek_v3");
  const auto of = [&config](const char* key) { return config.at(key).get<std::int64_t>(); };
  const std::int64_t heads = of("num_attention_heads"), hidden = of("hidden_size"),
                     query = of("q_lora_rank"), latent = of("kv_lora_rank"),
                     rotary = of("qk_rope_head_dim"), key = of("qk_nope_head_dim"),
                     value = of("v_head_dim");
  EXPECT_THAT(priority_models().back().latent,
              ElementsAre(GemmShape{0, query + latent + rotary, hidden},
                          GemmShape{0, heads * (key + rotary), query},
                          GemmShape{0, heads * (key + value), latent},
                          GemmShape{0, hidden, heads * value}));
}

TEST(PriorityModels, ATensorParallelRankHasItsShareOfEachWeight) {
  // Llama 3.1 70B over 8: (64 + 2 x 8) x 128 / 8, 8192 / 8, 2 x 28672 / 8, 28672 / 8.
  EXPECT_THAT(layer_weights(priority_models()[1]),
              ElementsAre(GemmShape{0, 1280, 8192}, GemmShape{0, 8192, 1024},
                          GemmShape{0, 7168, 8192}, GemmShape{0, 8192, 3584}));
}

TEST(PriorityShapes, FollowTheOrderOfTheModels) {
  EXPECT_THAT(order_of(priority_gemm_shapes(kMostFlops),
                       [](const GemmShape& shape) { return model_of(shape); }),
              ElementsAre(0, 1, 2, 3, 4));
  EXPECT_THAT(
      order_of(priority_grouped_shapes(), [](const GroupedShape& shape) { return shape.experts; }),
      ElementsAre(128, 32, 256));
  EXPECT_THAT(order_of(priority_prefill_shapes(4e12),
                       [](const PrefillShape& shape) { return model_of(shape.heads); }),
              ElementsAre(0, 1, 2, 3));
  EXPECT_THAT(order_of(priority_decode_shapes(kMostBytes),
                       [](const DecodeShape& shape) { return model_of(shape.heads); }),
              ElementsAre(0, 1, 2, 3));
}

TEST(PriorityShapes, GemmsReachFromOneRowToPrefillAndRepeatNothing) {
  std::set<std::tuple<std::int64_t, std::int64_t, std::int64_t>> different;
  std::set<std::int64_t> rows;
  const std::vector<GemmShape> shapes = priority_gemm_shapes(kMostFlops);
  for (const GemmShape& shape : shapes) {
    different.emplace(shape.m, shape.n, shape.k);
    rows.insert(shape.m);
    EXPECT_LE(shape.flops(), kMostFlops);
    EXPECT_EQ(shape.n % 16, 0);  // fp8 wants rows of whole 16 bytes
    EXPECT_EQ(shape.k % 16, 0);
  }
  EXPECT_EQ(different.size(), shapes.size());
  EXPECT_EQ(rows.size(), gemm_rows().size());
}

TEST(PriorityShapes, APrefixOfAModelSpreadsOverItsRows) {
  std::vector<GemmShape> shapes = priority_gemm_shapes(kMostFlops);
  shapes.resize(30);
  std::set<std::int64_t> rows;
  for (const GemmShape& shape : shapes) rows.insert(shape.m);
  EXPECT_GE(rows.size(), 12u);
}

TEST(PriorityShapes, HeadsAreMeasuredForLastTokensOnly) {
  std::int64_t most_rows = 0;
  for (const GemmShape& shape : priority_gemm_shapes(kMostFlops)) {
    if (shape.n == 128256 || shape.n == 128256 / 8) most_rows = std::max(most_rows, shape.m);
  }
  EXPECT_EQ(most_rows, 512);
}

TEST(PriorityShapes, ExpertsHaveBothGemmsForEachDistribution) {
  std::vector<GroupedShape> shapes = priority_grouped_shapes();
  std::erase_if(shapes, [](const GroupedShape& shape) {
    return shape.experts != 32 || shape.rows != 4 * 64;  // gpt-oss 20B, 64 tokens of 4 experts
  });
  ASSERT_EQ(shapes.size(), 4u);
  for (const GroupedShape& shape : shapes) {
    EXPECT_TRUE((shape.n == 5760 && shape.k == 2880) || (shape.n == 2880 && shape.k == 2880));
  }
}

TEST(PriorityShapes, OneLayerOfExpertsFitsItsBuffers) {
  for (const GroupedShape& shape : priority_grouped_shapes()) {
    EXPECT_LE(2 * shape.experts * shape.n * shape.k, 14 * kGiB);
    EXPECT_LE(2 * shape.rows * std::max(shape.n, shape.k), 2 * kGiB);
  }
}

TEST(PriorityShapes, LatentProductsAreByHead) {
  for (const BatchedShape& shape : priority_batched_shapes()) {
    EXPECT_EQ(shape.batch, 128);
    EXPECT_EQ(shape.gemm.n * shape.gemm.k, 512 * 128);
    EXPECT_LE(shape.gemm.m, 512);
  }
}

TEST(PriorityShapes, DecodeReadsPagedCaches) {
  for (const DecodeShape& shape : priority_decode_shapes(kMostBytes)) {
    EXPECT_EQ(shape.page_size, 64);
    EXPECT_LE(shape.kv_bytes(), kMostBytes);
  }
}

TEST(PriorityShapes, SustainedKernelsAreThoseOfTheFirstModel) {
  EXPECT_EQ(model_of(sustained_prefill().heads), 0);
  EXPECT_EQ(model_of(sustained_decode().heads), 0);
  for (const GemmShape& shape : priority_steady_shapes()) EXPECT_EQ(model_of(shape), 0);
}

}  // namespace
}  // namespace orrery::measure::priority_shapes_test
