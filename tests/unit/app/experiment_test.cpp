// SPDX-License-Identifier: Apache-2.0
#include "sim/app/experiments/core/experiment.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "sim/app/experiments/core/simulate.h"
#include "sim/app/experiments/steps/inference.h"

namespace orrery::experiment_test {
namespace {

namespace fs = std::filesystem;

const std::string kConfigs = ORRERY_SOURCE_DIR "/configs";
const std::string kDecode = kConfigs + "/experiments/deepseek_r1_decode.yaml";

LoadedExperiment load(const std::vector<std::string>& overrides,
                      const std::string& file = kDecode) {
  return load_experiment(file, overrides, config::Library(kConfigs));
}

TEST(Identity, IsTheMeaningNotTheText) {
  const std::string base = load({"system.accelerator.memory.bandwidth=8 TB/s"}).identity;
  EXPECT_EQ(base, load({"system.accelerator.memory.bandwidth=8000 GB/s"}).identity);
  EXPECT_NE(base, load({"system.accelerator.memory.bandwidth=8001 GB/s"}).identity);
}

TEST(InferenceExperiment, ShowsTheBatchOfARankHoweverItWasGiven) {
  const auto shown = [](const std::vector<std::string>& overrides) {
    const LoadedExperiment loaded = load(overrides);
    return dynamic_cast<const InferenceExperiment&>(*loaded.experiment).batch_text();
  };
  const std::string tensor_parallel = "parallel={tp: 8, ep: 8, dp: 2}";
  EXPECT_EQ(shown({tensor_parallel, "batch={global: 16}"}), "8/rank");
  EXPECT_EQ(shown({tensor_parallel, "batch={micro: 8}"}), "8/rank");
}

TEST(Identity, DoesNotDependOnNamesOrPaths) {
  const std::string base = load({}).identity;
  EXPECT_EQ(base, load({"name=something else"}).identity);
  const fs::path copy =
      fs::temp_directory_path() / ("orrery_identity_" + std::to_string(::getpid()) + ".yaml");
  fs::copy_file(kDecode, copy, fs::copy_options::overwrite_existing);
  EXPECT_EQ(base, load({}, copy.string()).identity);
  fs::remove(copy);
}

TEST(Identity, DependsOnEveryInputThatChangesTheResult) {
  const std::string base = load({}).identity;
  for (const char* change :
       {"batch.micro=2", "kv_length=4097", "precision=bf16", "parallel.dp=71",
        "model=deepseek_v2_lite", "system=vr_nvl72", "memory_reserve=0.2", "seed=1",
        // What calibrations and draws know them by.
        "system.system=mine", "system.accelerator.accelerator=mine"}) {
    std::vector<std::string> overrides = {change};
    if (std::string(change) == "parallel.dp=71") overrides.emplace_back("parallel.ep=71");
    EXPECT_NE(base, load(overrides).identity) << change;
  }
}

TEST(Experiment, BatchPerRankAndGlobalBatchAreTwoWaysToSayTheSame) {
  const InferenceConfig micro = load({"batch.micro=4"}).as<InferenceExperiment>().inference();
  const InferenceConfig global =
      load({"batch.micro=0", "batch.global=288"}).as<InferenceExperiment>().inference();
  EXPECT_EQ(micro.micro_batch, 4);
  EXPECT_EQ(global.micro_batch, 4);
}

TEST(Experiment, TokensCostWhatTheAcceleratorsCostMeanwhile) {
  // 72 GB200 at 2.75 USD an hour.
  const RunRecord record = simulate(load({"prices=neocloud"}));
  EXPECT_DOUBLE_EQ(record.find("usd_per_hour")->value, 72 * 2.75);
  EXPECT_DOUBLE_EQ(record.find("usd_per_million_tokens")->value,
                   72 * 2.75 / 3600 / record.find("tokens_per_s")->value * 1e6);
  EXPECT_TRUE(record.find("usd_per_million_tokens")->interval.has_value());
  EXPECT_EQ(simulate(load({})).find("usd_per_hour"), nullptr);
}

TEST(Experiment, AGlobalBatchThatDoesNotDivideIsAnError) {
  const LoadedExperiment loaded = load({"batch.micro=0", "batch.global=100"});
  EXPECT_THROW(loaded.as<InferenceExperiment>().inference(), config::ConfigError);
}

TEST(Experiment, APlanLargerThanTheMachineSaysSo) {
  try {
    load({"parallel.dp=144"});
    FAIL();
  } catch (const config::ConfigError& error) {
    EXPECT_THAT(error.what(), testing::HasSubstr("144 ranks, but 1 x"));
    EXPECT_THAT(error.what(), testing::HasSubstr("has 72"));
  }
}

TEST(Experiment, AcceleratorsArePackagesNotDies) {
  const LoadedExperiment loaded =
      load({"system=cm384", "parallel.dp=768", "parallel.ep=256", "precision=int8"});
  EXPECT_EQ(loaded.as<InferenceExperiment>().ranks(), 768);
  EXPECT_EQ(loaded.as<InferenceExperiment>().accelerators(), 384);
}

}  // namespace
}  // namespace orrery::experiment_test
