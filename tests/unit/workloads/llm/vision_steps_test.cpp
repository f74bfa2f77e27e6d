// SPDX-License-Identifier: Apache-2.0
// Steps of prompts with images: FLOPs and bytes by hand, and what a tower adds to a step.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "sim/config/diagnostics.h"
#include "sim/graph/verify.h"
#include "tests/unit/workloads/example_models.h"
#include "workloads/models/huggingface/huggingface.h"
#include "workloads/steps/figures/memory.h"
#include "workloads/steps/figures/statistics.h"
#include "workloads/steps/inference/inference.h"

namespace orrery::vision_steps_test {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

nlohmann::json small_text(const char* type) {
  return {{"model_type", type},       {"hidden_size", 256},       {"num_hidden_layers", 4},
          {"num_attention_heads", 8}, {"num_key_value_heads", 8}, {"head_dim", 32},
          {"intermediate_size", 512}, {"vocab_size", 1000}};
}

/// Qwen3-VL with a tower of 6 layers of 64 columns, taps behind two of them.
LlmConfig tapped() {
  return from_huggingface({{"model_type", "qwen3_vl"},
                           {"text_config", small_text("qwen3_vl_text")},
                           {"vision_config",
                            {{"depth", 6},
                             {"hidden_size", 64},
                             {"intermediate_size", 176},
                             {"num_heads", 4},
                             {"out_hidden_size", 256},
                             {"patch_size", 16},
                             {"spatial_merge_size", 2},
                             {"temporal_patch_size", 2},
                             {"num_position_embeddings", 2304},
                             {"deepstack_visual_indexes", {1, 3}}}}},
                          "tapped");
}

/// Qwen2.5-VL with windows of 8 x 8 patches in three of four layers.
LlmConfig windowed() {
  return from_huggingface({{"model_type", "qwen2_5_vl"},
                           {"text_config", small_text("qwen2_5_vl_text")},
                           {"vision_config",
                            {{"depth", 4},
                             {"hidden_size", 64},
                             {"intermediate_size", 172},
                             {"num_heads", 4},
                             {"out_hidden_size", 256},
                             {"patch_size", 14},
                             {"spatial_merge_size", 2},
                             {"temporal_patch_size", 2},
                             {"window_size", 112},
                             {"fullatt_block_indexes", {3}}}}},
                          "windowed");
}

InferenceConfig prefill(const LlmConfig& model, std::int64_t images, ImageSize image,
                        ParallelConfig parallel = {}) {
  InferenceConfig config;
  config.parallel = parallel;
  config.phase = Phase::kPrefill;
  config.images = images;
  config.image = image;
  config.sequence = 100 + images * model.vision->patches(image).tokens;
  return config;
}

/// FLOPs of all products of the tower on a rank.
double products(const StepList& steps) {
  double flops = 0;
  for (const Step& step : steps.steps())
    if (const Kernel* kernel = step.kernel()) flops += kernel->matrix_flops.base();
  return flops;
}

double attention(const StepList& steps) {
  double flops = 0;
  for (const Step& step : steps.steps())
    if (const Kernel* kernel = step.kernel(); kernel && kernel->name == "vision attention")
      flops += kernel->matrix_flops.base();
  return flops;
}

StepList tower_of(const LlmConfig& model, const InferenceConfig& config) {
  return tower_forward(*model.vision, tower_work(model, config));
}

// 256 x 384 pixels are 16 x 24 patches of 3 x 2 x 16 x 16, 384 rows: layers of 4 x 64 x 64 and
// 2 x 64 x 176, every patch with every other; three mergers of 96 rows of 256.
TEST(VisionSteps, HaveTheFlopsOfTheirSizes) {
  const LlmConfig model = tapped();
  const double by_hand = 2.0 * 384 * 1536 * 64 + 6 * 2.0 * 384 * (4 * 64 * 64 + 2 * 64 * 176) +
                         6 * 4.0 * 384 * 384 * 64 + 3 * 2.0 * 96 * (256 * 256 + 256 * 256);
  const InferenceConfig config = prefill(model, 1, {256, 384});
  const ImagePatches image = model.vision->patches({256, 384});
  EXPECT_EQ(image.tokens, 8 * 12);
  EXPECT_DOUBLE_EQ(tower_flops(*model.vision, image), by_hand);
  EXPECT_DOUBLE_EQ(products(tower_of(model, config)), by_hand);
}

// 280 x 280 pixels are 20 x 20 patches: four windows of 8 x 8, two and two of 8 x 4, one of 4 x 4.
TEST(VisionSteps, WindowsSeeTheirOwnPatches) {
  const LlmConfig model = windowed();
  const double pairs = 4 * 64.0 * 64 + 4 * 32.0 * 32 + 16.0 * 16, whole = 400.0 * 400;
  const StepList steps = tower_of(model, prefill(model, 1, {280, 280}));
  EXPECT_DOUBLE_EQ(attention(steps), 4 * 64 * (3 * pairs + whole));
  EXPECT_DOUBLE_EQ(products(steps), tower_flops(*model.vision, model.vision->patches({280, 280})));
}

TEST(VisionSteps, OfMoreImagesAreAsMuchMore) {
  const LlmConfig model = windowed();
  const double one = products(tower_of(model, prefill(model, 1, {280, 280})));
  for (const std::int64_t images : {2, 3, 7})
    EXPECT_DOUBLE_EQ(products(tower_of(model, prefill(model, images, {280, 280}))),
                     static_cast<double>(images) * one);
  EXPECT_THAT(tower_of(model, prefill(model, 0, {280, 280})).steps(), IsEmpty());
}

// What the step needs is the prompt of text and image tokens, and the tower.
TEST(VisionSteps, OfAPrefillAreThoseOfALongerPromptAndTheTower) {
  const LlmConfig model = tapped();
  const InferenceConfig seeing = prefill(model, 3, {256, 384});
  InferenceConfig reading = seeing;
  reading.images = 0;
  const double tower = 3 * tower_flops(*model.vision, model.vision->patches({256, 384}));
  EXPECT_EQ(seeing.sequence, 100 + 3 * 96);
  EXPECT_DOUBLE_EQ(model_flops(model, seeing).base() - model_flops(model, reading).base(), tower);
  const auto executed = [&](const InferenceConfig& config) {
    return program_statistics(build_inference(model, config)).matrix_flops().base();
  };
  EXPECT_NEAR((executed(seeing) - executed(reading)) / tower, 1, 1e-9);
}

TEST(VisionSteps, OfRanksThatSplitTheTowerAddUpToIt) {
  const LlmConfig model = tapped();
  const StepList whole = tower_of(model, prefill(model, 2, {256, 384}));
  const StepList quarter = tower_of(model, prefill(model, 2, {256, 384}, {.tp = 4}));
  // Patches are embedded by every rank.
  const double embedded = 2 * 2.0 * 384 * 1536 * 64;
  EXPECT_DOUBLE_EQ(4 * (products(quarter) - embedded), products(whole) - embedded);
  std::int64_t sums = 0;
  for (const Step& step : quarter.steps())
    if (step.collective() != nullptr) {
      EXPECT_EQ(step.collective()->kind, TransferKind::kAllReduce);
      ++sums;
    }
  EXPECT_EQ(sums, 6 * 2 + 3);
}

// 4 heads do not go to 8 ranks: each sees images of its own, and all get all of the tokens.
TEST(VisionSteps, OfRanksThatCannotSplitTheTowerAreOfImagesOfTheirOwn) {
  const LlmConfig model = tapped();
  const double one = products(tower_of(model, prefill(model, 1, {256, 384})));
  const StepList shared = tower_of(model, prefill(model, 9, {256, 384}, {.tp = 8}));
  EXPECT_DOUBLE_EQ(products(shared), 2 * one);
  const LayerCollective* gather = nullptr;
  for (const Step& step : shared.steps())
    if (step.collective() != nullptr) gather = step.collective();
  ASSERT_NE(gather, nullptr);
  EXPECT_EQ(gather->kind, TransferKind::kAllGather);
  EXPECT_DOUBLE_EQ(gather->bytes.base(), 9 * 96.0 * 256 * 3 * 2);
}

TEST(VisionSteps, AreSoundUnderEveryParallelism) {
  const LlmConfig model = tapped();
  for (const ParallelConfig& plan : {ParallelConfig{}, ParallelConfig{.tp = 4},
                                     ParallelConfig{.tp = 8}, ParallelConfig{.tp = 2, .pp = 2},
                                     ParallelConfig{.tp = 2, .sp = true}, ParallelConfig{.dp = 4}})
    EXPECT_THAT(verify(build_inference(model, prefill(model, 2, {256, 384}, plan))), IsEmpty());
}

// Behind the first two layers, what two taps gave: elements read twice and written once.
TEST(VisionSteps, TapsAreAddedBehindTheFirstLayers) {
  const LlmConfig model = tapped();
  const InferenceConfig seeing = prefill(model, 1, {256, 384});
  LlmConfig untapped = model;
  untapped.vision->projectors.resize(1);
  const auto adds = [&](const LlmConfig& of) {
    double bytes = 0;
    const Program program = build_inference(of, seeing);
    const ProgramStatistics all = program_statistics(program);
    for (const auto& [kind, entry] : all.kernels)
      if (kind == "elementwise") bytes += entry.bytes.base();
    return bytes;
  };
  // Functions of two mergers work on 96 rows of 256, which is as much as one tap adds to.
  const double row = 256 * 2;
  EXPECT_DOUBLE_EQ(adds(model) - adds(untapped), 2 * 96 * (3 * row + 2 * row));
}

TEST(VisionSteps, WeightsOfTheTowerAreAlwaysInMemory) {
  const LlmConfig model = tapped();
  LlmConfig blind = model;
  blind.vision.reset();
  InferenceConfig decode;
  decode.kv_length = 100;
  const auto weights = [](const LlmConfig& of, const InferenceConfig& config) {
    return inference_memory(of, config)[0].weights.base();
  };
  const double tower = 2.0 * static_cast<double>(tower_parameters(*model.vision, 1).total());
  EXPECT_DOUBLE_EQ(weights(model, decode) - weights(blind, decode), tower);
  // Towers stay in 16 bits where the model is in 8.
  decode.precision = Precision::kFp8;
  EXPECT_DOUBLE_EQ(weights(model, decode) - weights(blind, decode), tower);
}

TEST(VisionSteps, MoreImagesNeedMoreWorkingMemory) {
  const LlmConfig model = tapped();
  double before = 0;
  for (const std::int64_t images : {1, 4, 16}) {
    const double working =
        inference_memory(model, prefill(model, images, {1024, 1024}))[0].working.base();
    EXPECT_GT(working, before);
    before = working;
  }
}

TEST(VisionSteps, ImagesForAModelOfTextAreRefusedByName) {
  const LlmConfig text = small_llama(2);
  InferenceConfig config;
  config.phase = Phase::kPrefill;
  config.sequence = 8;
  config.images = 1;
  try {
    build_inference(text, config);
    FAIL();
  } catch (const config::KeyError& error) {
    EXPECT_THAT(error.what(), HasSubstr("model 'small llama' has no vision tower"));
    EXPECT_EQ(error.paths().front(), "images");
    EXPECT_EQ(error.advice().suggestion, "0");
  }
}

}  // namespace
}  // namespace orrery::vision_steps_test
