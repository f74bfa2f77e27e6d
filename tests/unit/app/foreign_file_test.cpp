// SPDX-License-Identifier: Apache-2.0
// A config.json of the Hugging Face Hub where a model is named.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "sim/app/experiments/core/experiment.h"
#include "sim/config/diagnostics.h"

namespace orrery::foreign_file_test {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

const std::string kConfig = ORRERY_SOURCE_DIR "/configs/models/hf/llama_3_1_8b.json";

std::string write(const std::string& name, const std::string& text) {
  const fs::path file =
      fs::path(testing::TempDir()) / ("foreign_" + std::to_string(::getpid())) / name;
  fs::create_directories(file.parent_path());
  std::ofstream(file) << text;
  return file.string();
}

std::string experiment(const std::string& model) {
  return "{experiment: inference, system: dgx_h100, model: " + model +
         ", phase: decode, kv_length: 2048, batch: {micro: 1}, precision: bf16}\n";
}

TEST(ForeignFile, AConfigOfTheHubIsTheModelItself) {
  const std::string named = write("named.yaml", experiment("llama_3_1_8b"));
  const std::string own = write("own.yaml", experiment("./config.json"));
  fs::copy_file(kConfig, fs::path(own).parent_path() / "config.json",
                fs::copy_options::overwrite_existing);
  const std::string identity = load_experiment(named, {}).identity;
  EXPECT_EQ(load_experiment(own, {}).identity, identity);
  EXPECT_EQ(load_experiment(named, {"model=" + kConfig}).identity, identity);
}

TEST(ForeignFile, AMapWithoutTheKeysOfTheHubIsAModelFileWithAMistake) {
  const std::string broken = write("broken.yaml", "layers: 3\n");
  const std::string file = write("broken_experiment.yaml", experiment("./broken.yaml"));
  try {
    load_experiment(file, {});
    FAIL() << "no error";
  } catch (const config::ConfigError& error) {
    EXPECT_THAT(error.what(), HasSubstr("unknown key 'layers' in model"));
  }
}

}  // namespace
}  // namespace orrery::foreign_file_test
