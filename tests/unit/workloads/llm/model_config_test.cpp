// SPDX-License-Identifier: Apache-2.0
#include "workloads/models/config/model_config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "sim/config/load.h"

namespace orrery::model_config_test {
namespace {

ModelConfig shipped(const std::string& name) {
  return config::load<ModelConfig>(ORRERY_SOURCE_DIR "/configs/models/" + name + ".yaml");
}

/// Tests run in parallel: each has a file of its own.
std::string file_of_this_test() {
  return testing::TempDir() + std::to_string(::getpid()) + "_" +
         testing::UnitTest::GetInstance()->current_test_info()->name() + ".yaml";
}

std::string error_of(const std::string& text) {
  const std::string path = file_of_this_test();
  std::ofstream(path) << text;
  try {
    config::load<ModelConfig>(path);
  } catch (const config::ConfigError& error) {
    return error.what();
  }
  return "";
}

TEST(ModelConfig, EveryShippedModelBuildsUnderTheNameOfItsFileAndHasASource) {
  int models = 0;
  for (const auto& entry :
       std::filesystem::directory_iterator(ORRERY_SOURCE_DIR "/configs/models")) {
    if (entry.path().extension() != ".yaml") continue;
    const std::string name = entry.path().stem().string();
    const ModelConfig model = shipped(name);
    EXPECT_EQ(model.name, name);
    EXPECT_FALSE(model.source.empty()) << name;
    EXPECT_EQ(model.build().name, name);
    EXPECT_TRUE(model.build().warnings.empty()) << name;
    ++models;
  }
  EXPECT_GT(models, 25);
}

// Narayanan et al. (arXiv 2104.04473), table 1 and its equation (2) for the number of parameters,
// 12 l h^2 (1 + 13/(12h) + (V + s)/(12 l h)): 174.6, 529.6 and 1008.0 billion.
TEST(ModelConfig, MegatronModelsHaveTheirPublishedNumberOfParameters) {
  const auto billions = [](const std::string& name) {
    return static_cast<double>(count_parameters(shipped(name).build()).total) / 1e9;
  };
  EXPECT_NEAR(billions("gpt_175b"), 174.6, 0.05);
  EXPECT_NEAR(billions("gpt_530b"), 529.6, 0.05);
  EXPECT_NEAR(billions("gpt_1t"), 1008.0, 0.05);
  EXPECT_NEAR(billions("gpt_4"), 1800, 20);  // as is told of it
  // 12 x 48 x 6144^2 = 21.743 B, 13 x 48 x 6144 = 3.8 M, (51200 + 2048) x 6144 = 327.2 M
  EXPECT_NEAR(billions("gpt_22b"), 22.074, 0.001);
}

TEST(ModelConfig, DimensionsLeftOutFollowFromTheOthers) {
  ModelConfig config;
  config.dimensions = DimensionsConfig{};
  config.dimensions->layers = 2;
  config.dimensions->hidden = 64;
  config.dimensions->heads = 8;
  config.dimensions->vocabulary = 100;
  const LlmConfig model = config.build();
  EXPECT_EQ(model.attention.kv_heads, 8);
  EXPECT_EQ(model.attention.head_dim, 8);
  EXPECT_EQ(model.mlp.intermediate, 256);
  EXPECT_EQ(model.positions, 0);
}

TEST(ModelConfig, TakesExactlyOneOfFileAndDimensions) {
  const std::string dimensions = "dimensions: {layers: 2, hidden: 64, heads: 8, vocabulary: 100}\n";
  EXPECT_EQ(error_of("model: m\nsource: s\n" + dimensions), "");
  EXPECT_THAT(error_of("model: m\nsource: s\n"), testing::HasSubstr("exactly one of hf"));
  EXPECT_THAT(
      error_of("model: m\nhf: " ORRERY_SOURCE_DIR "/configs/models/hf/gpt2.json\n" + dimensions),
      testing::HasSubstr("exactly one of hf"));
}

TEST(ModelConfig, MayBeTheFileAloneAndIsThenNamedAfterIt) {
  const std::string hf = ORRERY_SOURCE_DIR "/configs/models/hf/gpt2.json";
  const std::string path = file_of_this_test();
  std::ofstream(path) << "hf: " << hf << "\n";
  EXPECT_EQ(config::load<ModelConfig>(path).build().name, "gpt2");
}

TEST(ModelConfig, RefusesHeadsThatDoNotDivide) {
  EXPECT_THAT(error_of("model: m\nsource: s\n"
                       "dimensions: {layers: 2, hidden: 64, heads: 7, vocabulary: 100}\n"),
              testing::HasSubstr("heads must divide hidden"));
  EXPECT_THAT(error_of("model: m\nsource: s\ndimensions: {layers: 2, hidden: 64, heads: 8, "
                       "kv_heads: 3, vocabulary: 100}\n"),
              testing::HasSubstr("kv_heads must divide heads"));
}

TEST(ModelConfig, FindsItsFileBesideItself) {
  EXPECT_EQ(shipped("llama_3_1_8b").build().family, "llama");
}

}  // namespace
}  // namespace orrery::model_config_test
