// SPDX-License-Identifier: Apache-2.0
// Prompts with images: as a step on all kinds of devices, and as requests of serving.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "sim/app/experiments/core/simulate.h"
#include "sim/app/experiments/serving.h"
#include "sim/app/experiments/serving/metrics.h"
#include "sim/app/experiments/steps/plan_check.h"
#include "sim/app/questions/describe/describe.h"
#include "sim/config/diagnostics.h"
#include "tests/unit/app/loaded_text.h"

namespace orrery::image_prompts_test {
namespace {

using test::load;
using testing::HasSubstr;

double metric(const RunRecord& record, const char* name) { return record.find(name)->value; }

double prefill_s(const std::string& keys) {
  return metric(simulate(load("{experiment: inference, phase: prefill, model: qwen3_vl_8b, batch: "
                              "{micro: 1, sequence: 256}, " +
                              keys + "}")),
                "step_time_s");
}

TEST(ImagePrompts, TakeLongerWithMoreAndLargerImagesOnEveryKindOfDevice) {
  for (const char* system : {"dgx_h100", "dgx_b200", "gb200_nvl72", "mi355x_platform", "cm384"}) {
    const std::string on = std::string("system: ") + system + ", parallel: {tp: 2}";
    const std::string size = ", image: {height: 1024, width: 1024}";
    const double none = prefill_s(on), one = prefill_s(on + ", images: 1" + size);
    const double two = prefill_s(on + ", images: 2" + size);
    EXPECT_LT(none, one) << system;
    // Twice the images take at most twice as long, and the prompt more than once.
    EXPECT_LT(one, two) << system;
    EXPECT_LT(two, 2.05 * one) << system;
    EXPECT_LT(one, prefill_s(on + ", images: 1, image: {height: 1024, width: 2048}")) << system;
  }
}

// 1,024 tokens of each image stand beside those of text.
TEST(ImagePrompts, TakeThePromptOfAllTokensAndTheTower) {
  const std::string on = "system: dgx_h100";
  const double seen = prefill_s(on + ", images: 2, image: {height: 1024, width: 1024}");
  const double read =
      metric(simulate(load("{experiment: inference, phase: prefill, model: qwen3_vl_8b, batch: "
                           "{micro: 1, sequence: 2304}, system: dgx_h100}")),
             "step_time_s");
  // Two images are 11.6 TFLOP of the tower: 11.7 ms at 989.4 TFLOP/s, and at most four times that.
  EXPECT_GT(seen - read, 0.0117);
  EXPECT_LT(seen - read, 0.047);
}

TEST(ImagePrompts, ModelsThatResizeAllImagesAlikeNeedNoSize) {
  const std::string keys =
      "{experiment: inference, phase: prefill, model: llava_1_5_7b, system: dgx_h100, batch: "
      "{micro: 1, sequence: 64}, images: 1";
  const double small =
      metric(simulate(load(keys + ", image: {height: 99, width: 99}}")), "step_time_s");
  EXPECT_DOUBLE_EQ(metric(simulate(load(keys + "}")), "step_time_s"), small);
}

// Weights and blocks of the cache: the tower takes 1.15 GB of a device that serves text alone.
TEST(ImagePrompts, TheTowerLeavesLessOfTheMemoryToTheCache) {
  const auto memory = [](const std::string& model) {
    const LoadedExperiment loaded =
        load("{experiment: serving, model: " + model +
             ", serving: {workload: {rate: 1 /s, requests: 1}, fleet: [{system: dgx_h100, engine: "
             "{kind: vllm}}]}}");
    const auto& e = loaded.as<ServingExperiment>();
    return e.fleet().memory(e.serving.fleet).front();
  };
  const ServingMemory sees = memory("qwen3_vl_8b");
  const ServingMemory reads =
      memory("{hf: " ORRERY_SOURCE_DIR "/configs/models/hf/qwen3_vl_8b.json, language_only: true}");
  EXPECT_DOUBLE_EQ(sees.weights.base() - reads.weights.base(), 2.0 * 576388336);
  EXPECT_LT(sees.blocks, reads.blocks);
}

// At clocks that no cap lowers: served steps spread power over a step, replays over 20 ms of it.
TEST(ImagePrompts, ARequestAloneTakesItsSteps) {
  const std::string system =
      "system: {extends: dgx_h100, accelerator: {extends: h100_sxm, power: {state: burst}}}";
  const RunRecord record =
      simulate(load("experiment: serving\nmodel: qwen3_vl_8b\nserving:\n"
                    "  images: 2\n  image: {height: 512, width: 512}\n"
                    "  workload: {rate: 1 /s, requests: 1, input: 256, output: 4}\n"
                    "  fleet: [{" +
                    system + ", engine: {kind: vllm, host: {}}}]\n"));
  const double step = prefill_s(system +
                                ", images: 2, image: {height: 512, width: 512}, engine: {kind: "
                                "vllm}");
  EXPECT_NEAR(metric(record, "mean_ttft_ms") / 1e3 / step, 1, 0.02);
}

std::string refusal(const std::string& text) {
  try {
    check_plan(load(text));
  } catch (const config::ConfigError& error) {
    return error.what();
  }
  return {};
}

TEST(ImagePrompts, ThatNothingSeesAreRefusedByName) {
  const std::string served =
      "{experiment: serving, model: qwen2_5_3b, serving: {images: 1, workload: {rate: 1 /s, "
      "requests: 1}, fleet: [{system: dgx_h100, engine: {kind: vllm}}]}}";
  EXPECT_THAT(refusal(served), HasSubstr("model 'qwen2_5_3b' has no vision tower"));
  const std::string unsized =
      "{experiment: inference, phase: prefill, model: qwen3_vl_8b, system: dgx_h100, batch: "
      "{micro: 1, sequence: 64}, images: 1}";
  EXPECT_THAT(refusal(unsized), HasSubstr("depends on its size: say 'image'"));
}

TEST(ImagePrompts, AModelIsDescribedWithItsTower) {
  ModelConfig model;
  model.hf.path = ORRERY_SOURCE_DIR "/configs/models/hf/qwen2_5_vl_7b.json";
  const Answer answer = model_details(model);
  EXPECT_EQ(answer.json["parameters: vision tower"].get<std::int64_t>() +
                answer.json["parameters: projector"].get<std::int64_t>(),
            676550144);
  EXPECT_EQ(answer.json["tokens of an image of 1024 x 1024"], 1369);
}

}  // namespace
}  // namespace orrery::image_prompts_test
