// SPDX-License-Identifier: Apache-2.0
// Every accelerator of the library takes one decode and one prefill step, and cards of homes and
// labs read weights at the share of their bandwidth that such cards were measured at.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

#include "sim/app/experiments/core/simulate.h"
#include "sim/app/experiments/steps/plan_check.h"
#include "tests/unit/app/loaded_text.h"

namespace orrery::cards_test {
namespace {

using ::testing::HasSubstr;

const config::Library& library() {
  static const config::Library shipped(ORRERY_SOURCE_DIR "/configs");
  return shipped;
}

AcceleratorConfig device(const std::string& name) {
  return config::load<AcceleratorConfig>(library().locate("accelerators", name, ""), library(),
                                         "accelerators");
}

/// The narrowest of the formats that transformers run in; int8: a device without any.
std::string format_of(const AcceleratorConfig& device) {
  for (const Precision precision : {Precision::kBf16, Precision::kFp16, Precision::kFp32})
    if (device.compute.matrix.contains(precision)) return to_string(precision);
  return "int8";
}

/// Some 74,000 weights.
const std::string kSmall =
    "model: {dimensions: {layers: 1, hidden: 64, heads: 2, intermediate: 256, vocabulary: 128}}";

/// A system with the device: a card alone, or what packages of two dies are sold in.
std::string system_with(const std::string& accelerator) {
  const std::map<std::string, std::string> nodes = {
      {"ascend_910c", "cm384"}, {"mi250x", "frontier_node"}, {"max_1550", "aurora_node"}};
  const auto node = nodes.find(accelerator);
  return node != nodes.end() ? node->second
                             : "{extends: graphics_card, accelerator: " + accelerator + "}";
}

std::string step(const std::string& accelerator, const std::string& more) {
  return "{experiment: inference, system: " + system_with(accelerator) + ", parallel: {tp: 1}, " +
         more + "}";
}

double seconds(const std::string& text) {
  const LoadedExperiment loaded = test::load(text);
  check_plan(loaded);
  const RunRecord record = simulate(loaded);
  EXPECT_EQ(record.status, RunStatus::kOk) << record.reason;
  return record.status == RunStatus::kOk ? record.find("step_time_s")->value : 0;
}

/// What is said of a step that a device cannot take.
std::string refusal(const std::string& text) {
  try {
    seconds(text);
  } catch (const config::ConfigError& error) {
    return error.what();
  }
  return {};
}

class EveryAccelerator : public testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(Library, EveryAccelerator,
                         testing::ValuesIn(library().names("accelerators")),
                         [](const auto& test) { return test.param; });

TEST_P(EveryAccelerator, TakesADecodeAndAPrefillStepOrSaysWhatItLacks) {
  const std::string format = format_of(device(GetParam()));
  const std::string precision = ", precision: " + format;
  const std::string decode =
      step(GetParam(), "phase: decode, batch: {micro: 1}, kv_length: 32, " + kSmall + precision);
  if (format == "int8") {
    EXPECT_THAT(refusal(decode), HasSubstr("has no matrix rate for 'bf16'; it has int8"));
    return;
  }
  const double one = seconds(decode);
  EXPECT_GT(one, 0);
  // 32 tokens of one sequence against one.
  EXPECT_GE(seconds(step(GetParam(),
                         "phase: prefill, batch: {micro: 1, sequence: 32}, " + kSmall + precision)),
            0.999 * one);
}

struct Card {
  const char* name;
  bool narrow;  // weights of 4 bits, where 16 do not fit
};
const std::vector<Card> kCards = {
    {"rtx_3090", false}, {"rtx_3090_ti", false}, {"a40", false},          {"a6000", false},
    {"a30", false},      {"arc_b60", false},     {"rtx_6000_ada", false}, {"v100_pcie_32", false},
    {"rtx_3080", true},  {"rtx_4060_ti", true},  {"rtx_5060_ti", true},   {"v100_pcie", true}};

/// A step of Llama 3.1 8B by llama.cpp.
std::string llama(const Card& card, const std::string& phase) {
  const std::string model = card.narrow ? "{hf: " ORRERY_SOURCE_DIR
                                          "/validation/published/models/llama_3_1_8b_q4.json}"
                                        : "llama_3_1_8b";
  return step(card.name,
              phase + ", model: " + model + ", precision: fp16, engine: {kind: llama_cpp}");
}

// llama.cpp reads 0.74 to 0.82 of the peak with weights of 16 bits on RTX 3090, A40, RTX A6000 and
// RTX 6000 Ada (XiongjieDai/GPU-Benchmarks-on-LLM-Inference, 7d5af52, 2024).
TEST(Cards, ReadWeightsAtThreeFifthsToNineTenthsOfTheirBandwidth) {
  for (const Card& card : kCards) {
    const double bytes = card.narrow ? 7.5e9 * 4.5 / 8 : 15.0e9;  // without the embedding
    const double share = bytes /
                         seconds(llama(card,
                                       "phase: decode, batch: {micro: 1}, "
                                       "kv_length: 256")) /
                         device(card.name).memory.bandwidth.value.base();
    // Of 4 bits less: a scale, and starts of kernels weigh four times as much.
    EXPECT_GT(share, card.narrow ? 0.45 : 0.6) << card.name;
    EXPECT_LT(share, 0.9) << card.name;
  }
}

TEST(Cards, PromptsTakeNoLessThanTheirProductsDo) {
  for (const Card& card : kCards) {
    const AcceleratorConfig a = device(card.name);
    const double flops = 512 * 2 * 7.0e9;  // of the layers
    EXPECT_GT(seconds(llama(card, "phase: prefill, batch: {micro: 1, sequence: 512}")),
              flops / a.compute.matrix.at(Precision::kFp16).value.base())
        << card.name;
  }
}

TEST(Cards, OfAmpereHaveBf16AndRefuseFp8WithTheReason) {
  for (const char* name : {"rtx_3090", "rtx_3090_ti", "rtx_3080", "a40", "a6000", "a30"}) {
    EXPECT_GT(
        seconds(step(
            name, "phase: decode, batch: {micro: 1}, kv_length: 32, precision: bf16, " + kSmall)),
        0);
    EXPECT_THAT(refusal(step(name,
                             "phase: decode, batch: {micro: 1}, kv_length: 32, precision: "
                             "fp8, " +
                                 kSmall)),
                HasSubstr("has no matrix rate for 'fp8'; it has"))
        << name;
  }
}

// One group of two kinds would run at the pace of the slower one.
TEST(Cards, OfTwoKindsInOneGroupAreRefusedWithTheReason) {
  const std::string said = test::error_of(
      "{experiment: inference, phase: decode, system: [rtx_3090_4, rtx_3080_4], model: "
      "llama_3_1_8b, batch: {micro: 1}, kv_length: 32, precision: bf16}");
  EXPECT_THAT(said, HasSubstr("test.yaml:1:"));
  EXPECT_THAT(said, HasSubstr("ranks wait for the slowest of them"));
}

}  // namespace
}  // namespace orrery::cards_test
