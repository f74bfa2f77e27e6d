// SPDX-License-Identifier: Apache-2.0
// A switch of engines' kernels in one file: its key, its values by version, and who asks for it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "sim/app/experiments/steps/inference.h"
#include "sim/serving/kernel_rules.h"
#include "tests/unit/app/loaded_text.h"

namespace orrery::added_switch_test {
namespace {

using test::error_of;
using test::load;
using testing::HasSubstr;

const KernelSwitch kAdded{"added_switch", false, "a switch of a test"};

std::string step(const std::string& engine) {
  return "experiment: inference\nsystem: dgx_h100\nmodel: llama_3_1_8b\nphase: decode\n"
         "kv_length: 100\nbatch: {micro: 1}\nengine: " +
         engine + "\n";
}

bool is_on(const std::string& engine) {
  return load(step(engine)).as<InferenceExperiment>().engine.value()->kernels.on(kAdded);
}

TEST(AddedSwitch, IsAKeyOfEveryEngine) {
  for (const char* kind : {"vllm", "sglang", "tensorrt_llm", "llama_cpp", "tt_transformers"}) {
    EXPECT_FALSE(is_on(std::string("{kind: ") + kind + "}")) << kind;
    EXPECT_TRUE(is_on(std::string("{kind: ") + kind + ", kernels: {added_switch: on}}")) << kind;
  }
}

TEST(AddedSwitch, HasAValueByVersionWhereAFileHasOne) {
  const std::filesystem::path file = std::filesystem::path(testing::TempDir()) /
                                     ("added_switch." + std::to_string(::getpid()) + ".yaml");
  std::ofstream(file) << "extends: vllm_0_19\nrules:\n"
                         "  kernels.added_switch: {value: on, source: this test}\n";
  const std::string engine = "{kind: vllm, version: " + file.string();
  EXPECT_TRUE(is_on(engine + "}"));
  EXPECT_FALSE(is_on(engine + ", kernels: {added_switch: off}}"));
  std::filesystem::remove(file);
}

TEST(AddedSwitch, IsSuggestedForAKeyThatIsNearIt) {
  EXPECT_THAT(error_of(step("{kind: vllm, kernels: {aded_switch: on}}")),
              HasSubstr("did you mean 'added_switch'?"));
}

}  // namespace
}  // namespace orrery::added_switch_test
