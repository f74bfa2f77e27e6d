// SPDX-License-Identifier: Apache-2.0
// Number formats of training on devices that have them, and what the others say.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "sim/app/experiments/core/simulate.h"
#include "sim/app/experiments/steps/plan_check.h"
#include "tests/unit/app/loaded_text.h"

namespace orrery::precisions_test {
namespace {

using ::testing::HasSubstr;

struct Recipe {
  std::string name, precision, scaling;
};
/// Megatron-Core's --fp8-recipe tensorwise is current; mxfp8 and blockwise scale blocks.
const std::vector<Recipe> kRecipes = {
    {"fp32", "fp32", "delayed"},       {"tf32", "tf32", "delayed"},
    {"fp16", "fp16", "delayed"},       {"bf16", "bf16", "delayed"},
    {"fp8 delayed", "fp8", "delayed"}, {"fp8 tensorwise", "fp8", "current"},
    {"mxfp8", "fp8", "blocks"},        {"fp8 blockwise", "fp8_block", "blocks"},
    {"nvfp4", "nvfp4", "blocks"}};

LoadedExperiment step(const std::string& system, const Recipe& recipe) {
  return test::load("{experiment: training, system: " + system +
                    ", model: {dimensions: {layers: 4, hidden: 8192, heads: 64, vocabulary: "
                    "32000}}, parallel: {tp: 4, sp: true}, batch: {global: 2, micro: 1, sequence: "
                    "4096}, precision: " +
                    recipe.precision + ", software: {fp8_scaling: " + recipe.scaling + "}}");
}

double seconds(const std::string& system, const Recipe& recipe) {
  const LoadedExperiment loaded = step(system, recipe);
  check_plan(loaded);
  const RunRecord record = simulate(loaded);
  EXPECT_EQ(record.status, RunStatus::kOk) << system << " " << recipe.name << record.reason;
  return record.find("step_time_s")->value;
}

std::string fault(const std::string& system, const Recipe& recipe) {
  try {
    check_plan(step(system, recipe));
  } catch (const config::ConfigError& error) {
    return error.what();
  }
  return "";
}

TEST(Precisions, OfTrainingRunWhereDevicesHaveThemAndAreRefusedByNameElsewhere) {
  struct Device {
    std::string system;
    std::vector<bool> has;  // by recipe
  };
  const std::vector<Device> devices = {
      {"dgx_2", {true, false, true, false, false, false, false, false, false}},
      {"dgx_a100", {true, true, true, true, false, false, false, false, false}},
      {"dgx_h100", {true, true, true, true, true, true, true, true, false}},
      {"dgx_b200", {true, true, true, true, true, true, true, true, true}}};
  for (const Device& device : devices) {
    for (std::size_t i = 0; i < kRecipes.size(); ++i) {
      SCOPED_TRACE(device.system + " " + kRecipes[i].name);
      if (device.has[i]) {
        EXPECT_GT(seconds(device.system, kRecipes[i]), 0);
        continue;
      }
      const std::string said = fault(device.system, kRecipes[i]);
      EXPECT_THAT(said,
                  HasSubstr("has no matrix rate for '" + kRecipes[i].precision + "'; it has"));
    }
  }
}

/// Large products: fp32 lanes are slower than tf32, which has half the rate and twice the bytes of
/// 16 bits (states of the optimizer are as wide), which are slower than 8.
TEST(Precisions, TakeLongerTheWiderTheyAre) {
  const double fp32 = seconds("dgx_h100", kRecipes[0]), tf32 = seconds("dgx_h100", kRecipes[1]);
  const double bf16 = seconds("dgx_h100", kRecipes[3]), fp8 = seconds("dgx_h100", kRecipes[4]);
  EXPECT_GT(fp32, 2 * tf32);
  EXPECT_GT(tf32, 1.5 * bf16);
  EXPECT_LT(tf32, 2 * bf16);
  EXPECT_GT(bf16, 1.2 * fp8);
}

}  // namespace
}  // namespace orrery::precisions_test
