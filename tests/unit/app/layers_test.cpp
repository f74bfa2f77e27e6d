// SPDX-License-Identifier: Apache-2.0
// Steps of lists of layers on a GPU, a phone and a microcontroller.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "sim/app/experiments/core/simulate.h"
#include "sim/app/experiments/steps/plan_check.h"
#include "tests/unit/app/loaded_text.h"

namespace orrery::layers_test {
namespace {

using test::load;
using testing::HasSubstr;

const char* const kModels[] = {"alexnet", "ddpm_cifar10", "digits_1989", "dit_xl_2",
                               "gpt2",    "mobilenet_v2", "resnet_50",   "vit_b_16"};

RunRecord run(const std::string& keys) {
  return simulate(load("{experiment: layers, " + keys + "}"));
}
/// What is said of the plan of such a text.
std::string plan_error_of(const std::string& text) {
  try {
    check_plan(load(text));
  } catch (const config::ConfigError& error) {
    return error.what();
  }
  return {};
}
double metric(const RunRecord& record, const char* name) { return record.find(name)->value; }

TEST(Layers, EveryModelTrainsAndInfersOnAGpu) {
  for (const char* model : kModels) {
    const std::string on = std::string("system: dgx_a100, batch: 8, layer_model: ") + model;
    const double inferred = metric(run(on), "step_time_s");
    const double trained = metric(run(on + ", phase: training"), "step_time_s");
    EXPECT_GT(inferred, 0) << model;
    EXPECT_GT(trained, 2 * inferred) << model;
  }
}

TEST(Layers, VisionRunsOnAPhone) {
  for (const char* precision : {"fp16", "int8"}) {
    const RunRecord record = run(std::string("system: iphone_11, layer_model: mobilenet_v2, "
                                             "precision: ") +
                                 precision);
    EXPECT_EQ(record.status, RunStatus::kOk);
    // 53 kernels of 50 us at least; a phone takes milliseconds.
    EXPECT_GT(metric(record, "step_time_s"), 52 * 50e-6);
    EXPECT_LT(metric(record, "step_time_s"), 0.05);
  }
}

// 9,760 weights lie in flash; activations are 768 + 256 bytes at most.
TEST(Layers, TheDigitNetworkFitsAMicrocontroller) {
  const RunRecord record = run("system: stm32f746, layer_model: digits_1989, precision: int8");
  EXPECT_EQ(record.status, RunStatus::kOk);
  EXPECT_EQ(metric(record, "peak_memory_bytes"), 768 + 256);
  EXPECT_EQ(metric(record, "memory.flash_bytes"), 9760);
  // 63,660 multiply-adds at half of 4 a clock of 216 MHz, which nothing overlaps.
  EXPECT_GT(metric(record, "step_time_s"), 2 * 63'660 / (0.5 * 0.864e9));
}

TEST(Layers, WhatDoesNotFitAMicrocontrollerSaysSo) {
  const RunRecord record = run("system: stm32f746, layer_model: mobilenet_v2, precision: int8");
  EXPECT_EQ(record.status, RunStatus::kInfeasible);
  EXPECT_THAT(record.reason, HasSubstr("a rank needs 1.71 MB of 295 kB usable memory"));
  EXPECT_THAT(record.reason, HasSubstr("weights are 3.50 MB, the flash has 1.05 MB"));
}

// Replicas hide most of the reduction beside the backward pass.
TEST(Layers, ReplicasAddTheirGradientsUpBesideTheBackwardPass) {
  const std::string on =
      "system: dgx_a100, batch: 64, layer_model: resnet_50, phase: training, dp: ";
  const RunRecord one = run(on + "1"), eight = run(on + "8");
  EXPECT_EQ(metric(one, "breakdown.exposed_communication_s"), 0);
  EXPECT_GT(metric(eight, "step_time_s"), metric(one, "step_time_s"));
  EXPECT_LT(metric(eight, "step_time_s"), 1.2 * metric(one, "step_time_s"));
  EXPECT_GT(metric(eight, "samples_per_s"), 6 * metric(one, "samples_per_s"));
}

TEST(Layers, FoldedInferenceIsFaster) {
  const std::string on = "system: dgx_a100, batch: 64, layer_model: resnet_50";
  EXPECT_LT(metric(run(on), "step_time_s"), metric(run(on + ", fused: false"), "step_time_s"));
}

TEST(Layers, AFormatThatTheDeviceLacksIsRefusedWithThoseItHas) {
  EXPECT_THAT(plan_error_of("experiment: layers\nsystem: stm32f746\nlayer_model: digits_1989\n"
                            "precision: fp8\n"),
              HasSubstr("int8"));
  EXPECT_THAT(plan_error_of("experiment: layers\nsystem: dgx_a100\nlayer_model: digits_1989\n"
                            "phase: training\nprecision: int8\n"),
              HasSubstr("not trained in int8"));
}

TEST(Layers, AListThatDoesNotGoTogetherIsRefusedAtItsLine) {
  EXPECT_THAT(plan_error_of("experiment: layers\nsystem: dgx_a100\nlayer_model:\n"
                            "  input: {channels: 4, rows: 8, columns: 8}\n"
                            "  layers:\n"
                            "    - {kind: convolution, channels: 8, groups: 3}\n"),
              HasSubstr("test.yaml:6:"));
}

}  // namespace
}  // namespace orrery::layers_test
