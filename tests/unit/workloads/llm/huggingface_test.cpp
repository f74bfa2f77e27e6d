// SPDX-License-Identifier: Apache-2.0
#include "workloads/models/huggingface/huggingface.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

#include "workloads/models/families/family.h"

namespace orrery::huggingface_test {
namespace {

using config::ConfigError;
using nlohmann::json;
using testing::HasSubstr;

json llama() {
  return {{"model_type", "llama"},       {"hidden_size", 64},        {"num_hidden_layers", 4},
          {"num_attention_heads", 8},    {"num_key_value_heads", 2}, {"intermediate_size", 96},
          {"vocab_size", 1000},          {"rms_norm_eps", 1e-5},     {"hidden_act", "silu"},
          {"tie_word_embeddings", false}};
}

json with(json base, const json& changes) {
  base.merge_patch(changes);
  return base;
}

/// The message of the ConfigError that building gives; empty when it builds.
std::string error_of(const json& configuration) {
  try {
    from_huggingface(configuration, "model");
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "";
}

bool is_unsupported(const json& configuration) {
  try {
    from_huggingface(configuration, "model");
  } catch (const UnsupportedModel&) {
    return true;
  } catch (const ConfigError&) {
    return false;
  }
  return false;
}

TEST(HuggingFace, BuildsALlamaFromItsFields) {
  const LlmConfig model = from_huggingface(llama(), "tiny");
  EXPECT_EQ(model.name, "tiny");
  EXPECT_EQ(model.family, "llama");
  EXPECT_EQ(model.hidden, 64);
  EXPECT_EQ(model.layer_count(), 4);
  EXPECT_EQ(model.attention.heads, 8);
  EXPECT_EQ(model.attention.kv_heads, 2);
  EXPECT_EQ(model.attention.head_dim, 8);
  EXPECT_EQ(model.mlp.intermediate, 96);
  EXPECT_TRUE(model.mlp.gated);
  EXPECT_FALSE(model.tied_embeddings);
  EXPECT_TRUE(model.warnings.empty());
}

TEST(HuggingFace, TakesAHeadDimThatIsNotWidthOverHeads) {
  EXPECT_EQ(from_huggingface(with(llama(), {{"head_dim", 128}}), "m").attention.head_dim, 128);
}

TEST(HuggingFace, CountsANullFieldAsAbsent) {
  json configuration = llama();
  configuration["num_key_value_heads"] = nullptr;
  EXPECT_EQ(from_huggingface(configuration, "m").attention.kv_heads, 8);
}

TEST(HuggingFace, NamesOriginFieldAndValueOfAWrongField) {
  EXPECT_EQ(error_of(with(llama(), {{"num_attention_heads", "x"}})),
            "config.json: num_attention_heads: expected a positive integer, got \"x\"");
  EXPECT_EQ(error_of(with(llama(), {{"hidden_size", -64}})),
            "config.json: hidden_size: expected a positive integer, got -64");
  EXPECT_EQ(error_of(with(llama(), {{"hidden_size", 64.5}})),
            "config.json: hidden_size: expected a positive integer, got 64.5");
  EXPECT_EQ(error_of(with(llama(), {{"vocab_size", json::array({1})}})),
            "config.json: vocab_size: expected a positive integer, got a list");
  EXPECT_EQ(error_of(with(llama(), {{"attention_bias", 1}})),
            "config.json: attention_bias: expected true or false, got 1");
  EXPECT_EQ(error_of(with(llama(), {{"num_hidden_layers", nullptr}})),
            "config.json: num_hidden_layers: missing");
  EXPECT_EQ(error_of(json::array()), "config.json: configuration: expected an object, got a list");
  EXPECT_EQ(error_of(json::object()), "config.json: model_type: missing");
}

TEST(HuggingFace, RefusesSizesWhoseCountsWouldOverflow) {
  EXPECT_THAT(error_of(with(llama(), {{"hidden_size", 18446744073709551615U}})),
              HasSubstr("hidden_size: expected at most 131072"));
  EXPECT_THAT(error_of(with(llama(), {{"num_hidden_layers", 1000000000}})),
              HasSubstr("num_hidden_layers: expected at most 2048"));
}

TEST(HuggingFace, RefusesHeadsThatDoNotDivide) {
  EXPECT_THAT(error_of(with(llama(), {{"num_key_value_heads", 3}})),
              HasSubstr("num_key_value_heads: 3 does not divide 8"));
  EXPECT_THAT(error_of(with(llama(), {{"num_attention_heads", 6}})),
              HasSubstr("num_attention_heads: 6 does not divide the width 64"));
}

TEST(HuggingFace, NamesTheReasonForAFamilyThatIsNotModelled) {
  EXPECT_EQ(
      error_of({{"model_type", "rwkv"}}),
      "config.json: unsupported: model_type 'rwkv': RWKV-4 is not modelled: its states are of "
      "channels, without heads");
  for (const char* type : {"recurrent_gemma", "bloom"}) {
    EXPECT_TRUE(is_unsupported(with(llama(), {{"model_type", type}}))) << type;
  }
}

TEST(HuggingFace, TreatsAnUnknownTypeWithAllFieldsAsLlamaWithAWarning) {
  const LlmConfig model = from_huggingface(with(llama(), {{"model_type", "newmodel"}}), "m");
  ASSERT_EQ(model.warnings.size(), 1U);
  EXPECT_THAT(model.warnings[0], HasSubstr("'newmodel' is not known: treated as llama-like"));
  EXPECT_EQ(count_parameters(model).total, count_parameters(from_huggingface(llama(), "m")).total);
}

TEST(HuggingFace, RefusesAnUnknownTypeThatLacksAFieldOfALlama) {
  for (const char* field : {"hidden_size", "num_key_value_heads", "rms_norm_eps", "hidden_act"}) {
    json configuration = with(llama(), {{"model_type", "newmodel"}});
    configuration.erase(field);
    EXPECT_TRUE(is_unsupported(configuration)) << field;
    EXPECT_THAT(error_of(configuration), HasSubstr(field));
  }
  EXPECT_TRUE(is_unsupported(with(llama(), {{"model_type", "new"}, {"hidden_act", "relu2"}})));
}

// A feature that the builder of a family does not read would make the model silently wrong.
TEST(HuggingFace, RefusesStructureThatTheFamilyDoesNotRead) {
  const json features[] = {{{"num_experts", 8}},
                           {{"index_topk", 2048}},
                           {{"mamba_num_heads", 16}},
                           {{"sliding_window", 4096}},
                           {{"layer_types", {"x"}}},
                           {{"q_lora_rank", 512}},
                           {{"use_qk_norm", true}},
                           {{"num_nextn_predict_layers", 1}},
                           {{"attention_chunk_size", 8192}},
                           {{"linear_attn_config", {{"a", 1}}}}};
  for (const json& feature : features) {
    for (const char* type : {"llama", "newmodel"}) {
      const json configuration = with(with(llama(), {{"model_type", type}}), feature);
      EXPECT_TRUE(is_unsupported(configuration)) << configuration;
      EXPECT_THAT(error_of(configuration), HasSubstr(feature.begin().key()));
    }
  }
}

TEST(HuggingFace, AcceptsStructureThatIsSwitchedOff) {
  json configuration = with(llama(), {{"num_experts", 0},
                                      {"use_qk_norm", false},
                                      {"layer_types", json::array()},
                                      {"linear_attn_config", json::object()}});
  configuration["sliding_window"] = nullptr;
  EXPECT_EQ(error_of(configuration), "");
}

TEST(HuggingFace, BuildsTheLanguageModelOfAWrapperWithAWarning) {
  json inner = llama();
  inner.erase("tie_word_embeddings");
  const json wrapper = {{"model_type", "some_vl"},
                        {"text_config", inner},
                        {"vision_config", {{"hidden_size", 9}}},
                        {"tie_word_embeddings", true}};
  const LlmConfig model = from_huggingface(wrapper, "m");
  EXPECT_EQ(model.family, "llama");
  EXPECT_TRUE(model.tied_embeddings);
  EXPECT_THAT(model.warnings,
              testing::ElementsAre("vision tower left out: the language model alone is modelled; "
                                   "towers of model_type 'some_vl' are not modelled"));
}

TEST(HuggingFace, RefusesAWrapperWhoseLanguageModelLeavesOutSizes) {
  const json wrapper = {{"model_type", "some_vl"}, {"text_config", {{"model_type", "qwen3"}}}};
  EXPECT_TRUE(is_unsupported(wrapper));
  EXPECT_THAT(error_of(wrapper), HasSubstr("leaves out hidden_size"));
}

// LLaVA's language model is a Llama-2-7B whose sizes are the defaults of its class.
TEST(HuggingFace, SizesThatAWrappedLlamaLeavesOutAreThoseOfItsClass) {
  const json wrapper = {{"model_type", "llava"},
                        {"text_config", {{"model_type", "llama"}, {"vocab_size", 32064}}}};
  const LlmConfig model = from_huggingface(wrapper, "llava");
  EXPECT_EQ(count_parameters(model).total, 6738415616 + 2 * 64 * 4096);
  EXPECT_THAT(model.warnings,
              testing::Contains(HasSubstr("those of LlamaConfig: hidden_size 4096")));
  EXPECT_THAT(error_of({{"model_type", "llama"}}), HasSubstr("hidden_size: missing"));
}

TEST(FamilyRegistry, RefusesATypeTwice) {
  EXPECT_THROW(RegisterFamily({"llama"}, build_llama), std::logic_error);
}

std::vector<std::int64_t> windows(const LlmConfig& model) {
  std::vector<std::int64_t> result;
  for (const LayerConfig& layer : model.layers) result.push_back(layer.window);
  return result;
}

std::vector<bool> moe_layers(const LlmConfig& model) {
  std::vector<bool> result;
  for (const LayerConfig& layer : model.layers) result.push_back(layer.moe);
  return result;
}

TEST(Windows, OfMistralAreInAllLayers) {
  const json changes = {{"model_type", "mistral"}, {"sliding_window", 16}};
  EXPECT_THAT(windows(from_huggingface(with(llama(), changes), "m")),
              testing::ElementsAre(16, 16, 16, 16));
}

TEST(Windows, OfQwenStartAtMaxWindowLayersAndOnlyIfUsed) {
  const json changes = {{"model_type", "qwen2"}, {"sliding_window", 16}, {"max_window_layers", 3}};
  EXPECT_THAT(windows(from_huggingface(with(llama(), changes), "m")),
              testing::ElementsAre(0, 0, 0, 0));
  const json used = with(changes, {{"use_sliding_window", true}});
  EXPECT_THAT(windows(from_huggingface(with(llama(), used), "m")),
              testing::ElementsAre(0, 0, 0, 16));
}

TEST(Windows, OfGemma2AreInEverySecondLayerFromTheFirst) {
  const json changes = {{"model_type", "gemma2"}, {"sliding_window", 16}};
  EXPECT_THAT(windows(from_huggingface(with(llama(), changes), "m")),
              testing::ElementsAre(16, 0, 16, 0));
}

TEST(Windows, OfGemma3LeaveOutEveryPatternthLayer) {
  const json changes = {
      {"model_type", "gemma3_text"}, {"sliding_window", 16}, {"sliding_window_pattern", 3}};
  EXPECT_THAT(windows(from_huggingface(with(llama(), changes), "m")),
              testing::ElementsAre(16, 16, 0, 16));
}

TEST(Windows, FollowLayerTypesWhereGiven) {
  const json changes = {
      {"model_type", "gpt_oss"},
      {"num_local_experts", 4},
      {"num_experts_per_tok", 2},
      {"sliding_window", 16},
      {"layer_types",
       {"full_attention", "sliding_attention", "sliding_attention", "full_attention"}}};
  EXPECT_THAT(windows(from_huggingface(with(llama(), changes), "m")),
              testing::ElementsAre(0, 16, 16, 0));
  EXPECT_THAT(error_of(with(with(llama(), changes), {{"layer_types", {"full_attention"}}})),
              HasSubstr("layer_types: expected 4 entries, got 1"));
  EXPECT_THAT(error_of(with(with(llama(), changes), {{"sliding_window", nullptr}})),
              HasSubstr("sliding_window: missing"));
}

TEST(Experts, OfDeepSeekStartAfterTheDenseLayers) {
  const json changes = {{"model_type", "deepseek"}, {"n_routed_experts", 4},
                        {"num_experts_per_tok", 2}, {"moe_intermediate_size", 8},
                        {"n_shared_experts", 2},    {"first_k_dense_replace", 1}};
  const LlmConfig model = from_huggingface(with(llama(), changes), "m");
  EXPECT_THAT(moe_layers(model), testing::ElementsAre(false, true, true, true));
  EXPECT_EQ(model.moe.shared_intermediate, 16);
  const json sparse = with(changes, {{"moe_layer_freq", 2}});
  EXPECT_THAT(moe_layers(from_huggingface(with(llama(), sparse), "m")),
              testing::ElementsAre(false, false, true, false));
}

TEST(Experts, OfQwenFollowStepAndDenseList) {
  const json changes = {{"model_type", "qwen3_moe"}, {"num_experts", 4},
                        {"num_experts_per_tok", 2},  {"moe_intermediate_size", 8},
                        {"decoder_sparse_step", 2},  {"mlp_only_layers", {1}}};
  EXPECT_THAT(moe_layers(from_huggingface(with(llama(), changes), "m")),
              testing::ElementsAre(false, false, false, true));
}

TEST(Experts, PerTokenAreAtMostThoseThereAre) {
  const json changes = {
      {"model_type", "mixtral"}, {"num_local_experts", 4}, {"num_experts_per_tok", 5}};
  EXPECT_THAT(error_of(with(llama(), changes)),
              HasSubstr("num_experts_per_tok: expected at most 4, got 5"));
}

class HuggingFaceFile : public testing::Test {
 protected:
  std::string write(const std::string& name, const std::string& text) {
    const std::filesystem::path path =
        std::filesystem::path(testing::TempDir()) / std::to_string(::getpid()) / name;
    std::filesystem::create_directories(path.parent_path());
    std::ofstream(path) << text;
    return path.string();
  }
  std::string load_error(const std::string& text) {
    const std::string path = write(
        std::string(testing::UnitTest::GetInstance()->current_test_info()->name()) + ".json", text);
    try {
      load_huggingface(path);
    } catch (const ConfigError& error) {
      EXPECT_THAT(error.what(), HasSubstr(path));
      return error.what();
    }
    return "";
  }
};

TEST_F(HuggingFaceFile, IsNamedAfterItselfOrItsFolder) {
  EXPECT_EQ(load_huggingface(write("tiny_llama.json", llama().dump())).name, "tiny_llama");
  EXPECT_EQ(load_huggingface(write("tiny_folder/config.json", llama().dump())).name, "tiny_folder");
}

TEST_F(HuggingFaceFile, MayHoldTheNumbersThatPythonWrites) {
  std::string text = llama().dump();
  text.insert(1, R"("a": Infinity, "b": [-Infinity, NaN], "c\"": "say \"NaN\", Infinity",)");
  EXPECT_EQ(load_huggingface(write("python.json", text)).hidden, 64);
}

TEST_F(HuggingFaceFile, ThatIsNotJsonIsAnErrorWithItsName) {
  EXPECT_THAT(load_error(""), HasSubstr("not valid JSON"));
  EXPECT_THAT(load_error("{\"model_type\": \"llama\","), HasSubstr("not valid JSON"));
  EXPECT_THAT(load_error("{\"a\": 1e99999}"), HasSubstr("not valid JSON"));
  EXPECT_THAT(load_error("\xff\xfe"), HasSubstr("not valid JSON"));
  EXPECT_THAT(load_error("[]"), HasSubstr("expected an object"));
}

TEST_F(HuggingFaceFile, NestedThousandsDeepIsAnError) {
  EXPECT_THAT(load_error(std::string(1000, '[') + std::string(1000, ']')),
              HasSubstr("nested deeper than 64"));
  EXPECT_THAT(load_error(std::string(1000000, '[')), HasSubstr("nested deeper than 64"));
}

TEST_F(HuggingFaceFile, ThatDoesNotExistIsAnError) {
  EXPECT_THROW(load_huggingface("no/such/config.json"), ConfigError);
  EXPECT_THROW(load_huggingface(testing::TempDir()), ConfigError);
}

}  // namespace
}  // namespace orrery::huggingface_test
