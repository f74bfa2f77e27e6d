// SPDX-License-Identifier: Apache-2.0
// Whole models with their towers against the totals of the safetensors headers that the Hugging
// Face hub shows, from the fields of the published configurations that say sizes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <ostream>
#include <string>

#include "tests/printed_name.h"
#include "tests/unit/workloads/example_models.h"
#include "workloads/layers/rank_parameters.h"
#include "workloads/models/huggingface/huggingface.h"

namespace orrery::vision_parameters_test {
namespace {

using testing::Contains;
using testing::HasSubstr;

struct Whole {
  const char* name;
  const char* fields;
  std::int64_t total;
};

void PrintTo(const Whole& row, std::ostream* out) { *out << row.name; }

class VisionTotals : public testing::TestWithParam<Whole> {};

LlmConfig of(const char* fields) { return from_huggingface(nlohmann::json::parse(fields), "m"); }

TEST_P(VisionTotals, AreThoseOfThePublishedCheckpoints) {
  const LlmConfig model = of(GetParam().fields);
  ASSERT_TRUE(model.vision) << testing::PrintToString(model.warnings);
  EXPECT_EQ(count_parameters(model).total, GetParam().total);
}

TEST_P(VisionTotals, AreWhatARankHolds) {
  const LlmConfig model = of(GetParam().fields);
  EXPECT_EQ(stage_parameters(model, {}, 0).total(), count_parameters(model).total);
}

constexpr const char* kLlava15 = R"({"model_type": "llava", "text_config": {"model_type": "llama",
    "vocab_size": 32064}, "vision_config": {"model_type": "clip_vision_model",
    "hidden_size": 1024, "image_size": 336, "intermediate_size": 4096, "num_attention_heads": 16,
    "num_hidden_layers": 24, "patch_size": 14}, "vision_feature_layer": -2})";
constexpr const char* kLlavaNext = R"({"model_type": "llava_next", "text_config": {
    "model_type": "mistral", "vocab_size": 32064}, "vision_config": {
    "model_type": "clip_vision_model", "hidden_size": 1024, "image_size": 336,
    "intermediate_size": 4096, "num_attention_heads": 16, "num_hidden_layers": 24,
    "patch_size": 14}, "image_grid_pinpoints": [[336, 672], [672, 336], [672, 672], [1008, 336],
    [336, 1008]]})";
constexpr const char* kPhi35 = R"({"model_type": "phi3_v", "hidden_size": 3072,
    "intermediate_size": 8192, "num_attention_heads": 32, "num_hidden_layers": 32,
    "num_key_value_heads": 32, "vocab_size": 32064, "tie_word_embeddings": false,
    "img_processor": {"name": "clip_vision_model",
    "model_name": "openai/clip-vit-large-patch14-336"}})";
constexpr const char* kQwen2Vl = R"({"model_type": "qwen2_vl", "hidden_size": 3584,
    "num_hidden_layers": 28, "num_attention_heads": 28, "num_key_value_heads": 4,
    "intermediate_size": 18944, "vocab_size": 152064, "tie_word_embeddings": false,
    "vision_config": {"depth": 32, "embed_dim": 1280, "mlp_ratio": 4, "num_heads": 16,
    "in_chans": 3, "hidden_size": 3584, "patch_size": 14, "spatial_merge_size": 2,
    "spatial_patch_size": 14, "temporal_patch_size": 2}})";
constexpr const char* kQwen25Vl = R"({"model_type": "qwen2_5_vl", "hidden_size": 3584,
    "num_hidden_layers": 28, "num_attention_heads": 28, "num_key_value_heads": 4,
    "intermediate_size": 18944, "vocab_size": 152064, "tie_word_embeddings": false,
    "use_sliding_window": false, "sliding_window": 32768, "max_window_layers": 28,
    "vision_config": {"depth": 32, "hidden_size": 1280, "intermediate_size": 3420,
    "num_heads": 16, "in_chans": 3, "out_hidden_size": 3584, "patch_size": 14,
    "spatial_merge_size": 2, "window_size": 112, "fullatt_block_indexes": [7, 15, 23, 31],
    "temporal_patch_size": 2}})";
constexpr const char* kQwen3Vl = R"({"model_type": "qwen3_vl", "text_config": {
    "model_type": "qwen3_vl_text", "hidden_size": 4096, "num_hidden_layers": 36,
    "num_attention_heads": 32, "num_key_value_heads": 8, "head_dim": 128,
    "intermediate_size": 12288, "vocab_size": 151936}, "tie_word_embeddings": false,
    "vision_config": {"depth": 27, "hidden_size": 1152, "intermediate_size": 4304,
    "num_heads": 16, "in_channels": 3, "out_hidden_size": 4096, "patch_size": 16,
    "spatial_merge_size": 2, "temporal_patch_size": 2, "num_position_embeddings": 2304,
    "deepstack_visual_indexes": [8, 16, 24]}})";
constexpr const char* kGemma3Tower = R"("vision_config": {"model_type": "siglip_vision_model",
    "hidden_size": 1152, "image_size": 896, "intermediate_size": 4304, "num_attention_heads": 16,
    "num_hidden_layers": 27, "patch_size": 14}, "mm_tokens_per_image": 256})";
const std::string kGemma3Small = std::string(R"({"model_type": "gemma3", "text_config": {
    "model_type": "gemma3_text", "hidden_size": 2560, "intermediate_size": 10240,
    "num_hidden_layers": 34, "sliding_window": 1024}, )") +
                                 kGemma3Tower;
const std::string kGemma3Large = std::string(R"({"model_type": "gemma3", "text_config": {
    "model_type": "gemma3_text", "head_dim": 128, "hidden_size": 5376, "intermediate_size": 21504,
    "num_attention_heads": 32, "num_hidden_layers": 62, "num_key_value_heads": 16,
    "sliding_window": 1024}, )") +
                                 kGemma3Tower;
constexpr const char* kPixtral = R"({"model_type": "llava", "text_config": {
    "model_type": "mistral", "head_dim": 128, "hidden_size": 5120, "intermediate_size": 14336,
    "num_hidden_layers": 40, "num_key_value_heads": 8, "vocab_size": 131072},
    "vision_config": {"model_type": "pixtral", "head_dim": 64, "image_size": 1024,
    "patch_size": 16}, "vision_feature_layer": -1, "vision_feature_select_strategy": "full"})";
constexpr const char* kMistralSmall = R"({"model_type": "mistral3", "text_config": {
    "model_type": "mistral", "head_dim": 128, "hidden_size": 5120, "intermediate_size": 32768,
    "num_attention_heads": 32, "num_hidden_layers": 40, "num_key_value_heads": 8,
    "vocab_size": 131072}, "multimodal_projector_bias": false, "spatial_merge_size": 2,
    "vision_config": {"model_type": "pixtral", "head_dim": 64, "hidden_size": 1024,
    "image_size": 1540, "intermediate_size": 4096, "num_attention_heads": 16,
    "num_hidden_layers": 24, "patch_size": 14}})";
constexpr const char* kInternVl = R"({"model_type": "internvl_chat", "llm_config": {
    "model_type": "internlm2", "hidden_size": 4096, "num_hidden_layers": 32,
    "num_attention_heads": 32, "num_key_value_heads": 8, "intermediate_size": 14336,
    "vocab_size": 92553, "bias": false}, "vision_config": {"model_type": "intern_vit_6b",
    "hidden_size": 1024, "image_size": 448, "intermediate_size": 4096,
    "norm_type": "layer_norm", "num_attention_heads": 16, "num_hidden_layers": 24,
    "patch_size": 14, "qk_normalization": false, "qkv_bias": true}, "downsample_ratio": 0.5,
    "max_dynamic_patch": 12, "use_thumbnail": true})";

constexpr const char* kGlm41V = R"({"model_type": "glm4v", "text_config": {
    "model_type": "glm4v_text", "hidden_size": 4096, "num_hidden_layers": 40,
    "num_attention_heads": 32, "num_key_value_heads": 2, "attention_bias": true,
    "intermediate_size": 13696, "vocab_size": 151552}, "tie_word_embeddings": false,
    "vision_config": {"depth": 24, "hidden_size": 1536, "intermediate_size": 13696,
    "num_heads": 12, "attention_bias": false, "image_size": 336, "in_channels": 3,
    "out_hidden_size": 4096, "patch_size": 14, "spatial_merge_size": 2,
    "temporal_patch_size": 2}})";

INSTANTIATE_TEST_SUITE_P(Hub, VisionTotals,
                         testing::Values(Whole{"llava-1.5-7b-hf", kLlava15, 7063427072},
                                         Whole{"llava-v1.6-mistral-7b-hf", kLlavaNext, 7566747648},
                                         Whole{"Phi-3.5-vision-instruct", kPhi35, 4146621440},
                                         Whole{"Qwen2-VL-7B-Instruct", kQwen2Vl, 8291375616},
                                         Whole{"Qwen2.5-VL-7B-Instruct", kQwen25Vl, 8292166656},
                                         Whole{"Qwen3-VL-8B-Instruct", kQwen3Vl, 8767123696},
                                         Whole{"gemma-3-4b-it", kGemma3Small.c_str(), 4300079472},
                                         Whole{"gemma-3-27b-it", kGemma3Large.c_str(), 27432406640},
                                         Whole{"pixtral-12b", kPixtral, 12682739712},
                                         Whole{"Mistral-Small-3.1-24B", kMistralSmall, 24011361280},
                                         Whole{"GLM-4.1V-9B-Thinking", kGlm41V, 10292777472},
                                         Whole{"InternVL2_5-8B", kInternVl, 8075365376}),
                         PrintedName());

// The hub counts 108,641,793,536 for Llama 4 Scout with its tower.
TEST(VisionParameters, OfLlama4ScoutAreWhatIsBesideItsText) {
  const ParameterCount count = count_parameters(library_model("llama_4_scout"));
  EXPECT_EQ(count.total, 108641793536);
}

// 27 layers of 1,024 columns and 12 heads of 128 without biases, RMS norms, patches of 3 x 14 x 14
// without a bias, 64 x 64 places; a merger of 4,096 to 4,096 to 7,168 columns, and a norm behind.
TEST(VisionParameters, OfKimiK3AreThoseOfItsMatrices) {
  const std::int64_t layer = 4 * 1024 * 1536 + 2 * 1024 * 4096 + 2 * 1024;
  EXPECT_EQ(
      count_parameters(library_model("kimi_k3")).vision,
      27 * layer + 3 * 14 * 14 * 1024 + 64 * 64 * 1024 + 1024 + 4096 * 4096 + 4096 * 7168 + 7168);
}

// Ranks that split heads have all of what is added elementwise: norms, positions, patches and the
// biases behind sums.
TEST(VisionParameters, OfRanksAreAShareOfMatricesAndAllOfTheRest) {
  const VisionTower tower = *of(kQwen25Vl).vision;
  const TowerParameters whole = tower_parameters(tower, 1), eighth = tower_parameters(tower, 4);
  EXPECT_EQ(whole.split, 4 * eighth.split);
  EXPECT_EQ(whole.whole, eighth.whole);
  // 16 heads do not go to 3 ranks, which then have all of the tower.
  EXPECT_FALSE(splits(tower, 3));
  EXPECT_EQ(tower_parameters(tower, 3).total(), whole.total());
}

TEST(VisionParameters, OfFieldsThatAFileLeavesOutAreThoseOfItsClassAndSaySo) {
  EXPECT_THAT(of(kPixtral).warnings,
              Contains(HasSubstr("vision_config: fields that the file leaves out are those of "
                                 "PixtralVisionConfig: num_hidden_layers 24")));
}

TEST(VisionParameters, OfTowersThatAreNotModelledAreLeftOutByName) {
  nlohmann::json fields = nlohmann::json::parse(kQwen3Vl);
  fields["model_type"] = "deepseek_vl_v2";
  const LlmConfig model = from_huggingface(fields, "m");
  EXPECT_FALSE(model.vision);
  EXPECT_THAT(model.warnings, Contains(HasSubstr("towers of model_type 'deepseek_vl_v2' are not "
                                                 "modelled; about 411 M parameters")));
  nlohmann::json kimi = {{"model_type", "kimi_k25"},
                         {"text_config", fields["text_config"]},
                         {"vision_config", {{"mm_projector_type", "resampler"}}}};
  EXPECT_THAT(from_huggingface(kimi, "m").warnings,
              Contains(HasSubstr("mm_projector_type 'resampler' is not modelled")));
}

}  // namespace
}  // namespace orrery::vision_parameters_test
