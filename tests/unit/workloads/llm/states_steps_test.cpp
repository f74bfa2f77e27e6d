// SPDX-License-Identifier: Apache-2.0
// One step of prefill and one of decode of models whose layers hold states, whole on a rank in
// bf16: FLOPs, what a sequence holds, and what kernels over caches and states read. Every row is
// worked out by hand from the sizes in the model's configuration.
#include <gtest/gtest.h>

#include <ostream>
#include <string>

#include "sim/config/diagnostics.h"
#include "sim/graph/verify.h"
#include "tests/printed_name.h"
#include "tests/unit/workloads/balanced_tensors.h"
#include "tests/unit/workloads/example_models.h"
#include "workloads/layers/layers.h"
#include "workloads/steps/figures/memory.h"
#include "workloads/steps/figures/statistics.h"
#include "workloads/steps/inference/inference.h"
#include "workloads/steps/training/training.h"

namespace orrery::states_steps_test {
namespace {

constexpr double kContext = 4096;

struct StateRow {
  const char* model;
  double matrices;  ///< multiply-adds of a token in the matrices of all layers
  double head;
  double keys;     ///< multiply-adds of a token for each key
  double scanned;  ///< FLOPs of a token of a prompt in the products of chunks
  double held;     ///< bytes of a sequence of kContext tokens
  double read;     ///< bytes that attention and updates of states read in a decode
};

void PrintTo(const StateRow& row, std::ostream* out) { *out << row.model; }

class StatesSteps : public testing::TestWithParam<StateRow> {};

InferenceConfig state_step(Phase phase) {
  InferenceConfig config;
  config.phase = phase;
  config.micro_batch = 1;
  if (phase == Phase::kDecode)
    config.kv_length = static_cast<std::int64_t>(kContext) - 1;
  else
    config.sequence = static_cast<std::int64_t>(kContext);
  return config;
}

double flops_of(const LlmConfig& model, Phase phase) {
  const Program program = build_inference(model, state_step(phase));
  EXPECT_TRUE(verify(program).empty());
  return program_statistics(program).matrix_flops().base();
}

TEST_P(StatesSteps, HaveTheFlopsAndBytesOfTheirSizes) {
  const StateRow& row = GetParam();
  const LlmConfig model = library_model(row.model);
  EXPECT_DOUBLE_EQ(flops_of(model, Phase::kDecode),
                   2 * (row.matrices + row.head + kContext * row.keys));
  EXPECT_DOUBLE_EQ(
      flops_of(model, Phase::kPrefill),
      2 * (kContext * row.matrices + row.head + kContext * (kContext + 1) / 2 * row.keys) +
          kContext * row.scanned);
  const MemoryUse use = inference_memory(model, state_step(Phase::kDecode)).front();
  EXPECT_DOUBLE_EQ(use.kv_cache.base(), row.held);
  EXPECT_DOUBLE_EQ(use.weights.base(), 2 * double(count_parameters(model).total));
  const RankWork work = rank_work(state_step(Phase::kDecode));
  double read = 0;
  for (const LayerConfig& layer : model.layers) {
    const StepList steps = layer_forward(model, layer, work);
    for (const Step& step : steps.steps()) {
      const Kernel* kernel = step.kernel();
      if (kernel == nullptr) continue;
      if (kernel->name == "attention" || kernel->name == "mamba state update" ||
          kernel->name == "wkv")
        read += kernel->read.base();
    }
  }
  EXPECT_DOUBLE_EQ(read, row.read);
}

// Falcon-H1-7B: in each of 44 layers of 3,072 a Mamba-2 of 24 heads of 128 with states of 256 in
// one group (6,680 columns of z, x, B, C and dt) beside 12 heads of 128 with 2 of keys and values,
// then an MLP of 12,288. A token of a chunk of 256 sees 128.5 of its tokens.
constexpr StateRow kFalconH1 = {
    "falcon_h1_7b",
    44 * 3072.0 * (6680 + 3072 + 128 * (2 * 12 + 2 * 2) + 3 * 12288),
    130049.0 * 3072,
    44 * 12.0 * 2 * 128,
    44 * 2 * (2 * 3072.0 * 256 + 256.0 * 256 + 3072 * 128.5),
    44 * (24.0 * 128 * 256 * 4 + 3584 * 3 * 2 + kContext * 2 * 2 * 128 * 2),
    44 * (24.0 * 128 * 256 * 4 + (3072 + 2 * 256 + 24) * 2 + 12 * 128 * 2 +
          kContext * 2 * 2 * 128 * 2)};

// Zamba2-7B: 81 layers of Mamba-2, 112 heads of 64 with states of 64 in two groups; 13 uses of two
// blocks with 32 heads of 224 that read 7,168 columns, an MLP of 14,336 with adapters of 128, and a
// square matrix behind each.
constexpr StateRow kZamba2 = {
    "zamba2_7b",
    81 * 3584.0 * (14704 + 7168) + 13 * (3 * 7168.0 * 7168 + 7168.0 * 3584 + 3 * 3584.0 * 14336 +
                                         128.0 * (3584 + 2 * 14336) + 3584.0 * 3584),
    32000.0 * 3584,
    13 * 32.0 * 2 * 224,
    81 * 2 * (2 * 7168.0 * 64 + 2 * 256.0 * 64 + 7168 * 128.5),
    81 * (112.0 * 64 * 64 * 4 + 7424 * 3 * 2) + 13 * kContext * 2 * 32 * 224 * 2,
    81 * (112.0 * 64 * 64 * 4 + (7168 + 2 * 2 * 64 + 112) * 2) +
        13 * (32 * 224 * 2 + kContext * 2 * 32 * 224 * 2)};

// Falcon Mamba 7B: 64 layers of 8,192 channels with states of 16 in 16 bits; steps through 256
// columns beside B and C. Updates read inputs, steps and gates besides.
constexpr StateRow kFalconMamba = {
    "falcon_mamba_7b",          64 * 8192.0 * (3 * 4096 + 256 + 2 * 16 + 256), 65024.0 * 4096, 0, 0,
    64 * 8192.0 * (16 + 3) * 2, 64 * (8192.0 * 16 + 3 * 8192 + 2 * 16) * 2};

// RWKV-5 World 3B: 32 blocks of 2,560 with 40 heads, five square matrices, channels of 8,960 and a
// receptance. Two last tokens of 16 bits beside fp32 states; decays are constants.
constexpr StateRow kRwkv5 = {"rwkv_5_3b",
                             32 * 2560.0 * (5 * 2560 + 2 * 8960 + 2560),
                             65536.0 * 2560,
                             0,
                             0,
                             32 * (40.0 * 64 * 64 * 4 + 2 * 2 * 2560),
                             32 * (40.0 * 64 * 64 * 4 + 2560 * 3 * 2)};

// RWKV-6 World 7B: 64 heads; mixtures through 5 x 64 columns, decays through 128, in fp32.
constexpr StateRow kRwkv6 = {"rwkv_6_7b",
                             32 * 4096.0 * (5 * 4096 + 2 * 5 * 64 + 2 * 128 + 2 * 14336 + 4096),
                             65536.0 * 4096,
                             0,
                             0,
                             32 * (64.0 * 64 * 64 * 4 + 2 * 2 * 4096),
                             32 * (64.0 * 64 * 64 * 4 + 4096 * (3 * 2 + 4))};

// RWKV-7 World 1.5B: 24 blocks, 32 heads; decays and rates through 96 columns, gates through 256,
// values of all blocks but the first through 64; no receptance in channel mixing.
constexpr StateRow kRwkv7 = {
    "rwkv_7_1_5b",
    24 * 2048.0 * (4 * 2048 + 2 * (96 + 96 + 256) + 2 * 8192) + 23 * 2048.0 * 2 * 64,
    65536.0 * 2048,
    0,
    0,
    24 * (32.0 * 64 * 64 * 4 + 2 * 2 * 2048),
    24 * (32.0 * 64 * 64 * 4 + 2048 * 6 * 2)};

INSTANTIATE_TEST_SUITE_P(Families, StatesSteps,
                         testing::Values(kFalconH1, kZamba2, kFalconMamba, kRwkv5, kRwkv6, kRwkv7),
                         PrintedName());

// 7 FLOPs for each element of a state and token, 9 in version 7, and exponentials of decays.
TEST(Rwkv, TheRecurrenceRunsOnVectorLanesTokenByToken) {
  const LlmConfig model = library_model("rwkv_7_1_5b");
  RankWork work = rank_work(state_step(Phase::kPrefill));
  const auto recurrence = [&] {
    const StepList steps = layer_forward(model, model.layers[0], work);
    for (const Step& step : steps.steps())
      if (step.name() == "wkv") return *step.kernel();
    return Kernel{};
  };
  const Kernel first = recurrence();
  EXPECT_EQ(first.matrix_flops, Flops());
  EXPECT_DOUBLE_EQ(first.vector_flops.base(), kContext * (9.0 * 32 * 64 * 64 + 2 * 2048));
  EXPECT_EQ(first.batch, 32);
  EXPECT_EQ(first.m, 4096);
  // A prompt that goes on reads the states that its earlier tokens left.
  work.batch.context += 100;
  EXPECT_EQ((recurrence().read - first.read).base(), 32 * 64 * 64 * 4);
}

TEST(Rwkv, IsSplitByHeads) {
  const LlmConfig model = library_model("rwkv_5_3b");  // 40 heads
  InferenceConfig config = state_step(Phase::kDecode);
  config.parallel.tp = 8;
  EXPECT_TRUE(verify(build_inference(model, config)).empty());
  config.parallel.tp = 16;
  EXPECT_THROW(build_inference(model, config), config::KeyError);
}

// Products of a mixture each keep it: of 2,560 columns what is mixed and 4 mixtures, receptances,
// keys, values and gates, what the recurrence gives and what the last product reads.
TEST(Rwkv, TrainingKeepsAMixtureForEachProduct) {
  const LlmConfig model = library_model("rwkv_5_3b");
  RankWork work;
  work.batch.query = work.batch.context = 128;
  LayerConfig layer = model.layers[2];
  ASSERT_EQ(layer.mixer, MixerKind::kTimeMix);
  // In front of the norm besides.
  EXPECT_EQ(layer_activation_bytes(model, layer, work).base(), 128 * 2 * 2560.0 * (1 + 5 + 4 + 2));
}

TEST(Rwkv, TensorsOfTrainingStepsAreMadeUsedAndFreed) {
  for (const char* name : {"rwkv_5_3b", "rwkv_6_7b", "rwkv_7_1_5b"})
    test::expect_balanced_tensors(library_model(name), 128,
                                  {ParallelConfig{}, ParallelConfig{.tp = 2, .sp = true, .pp = 2}});
}

TEST(SharedBlocks, TensorsOfTrainingStepsAreMadeUsedAndFreed) {
  test::expect_balanced_tensors(library_model("zamba2_7b"), 128,
                                {ParallelConfig{}, ParallelConfig{.tp = 2, .sp = true, .dp = 2}});
}

TEST(Rwkv, StatesAreTheSameWhateverTheContext) {
  const LlmConfig model = library_model("rwkv_6_7b");
  InferenceConfig config = state_step(Phase::kDecode);
  const Bytes held = inference_memory(model, config).front().kv_cache;
  config.kv_length *= 100;
  EXPECT_EQ(inference_memory(model, config).front().kv_cache, held);
}

TEST(SharedBlocks, TwoHoldTheWeightsOfThirteen) {
  const LlmConfig model = library_model("zamba2_7b");
  std::int64_t own = 0, used = 0;
  for (const LayerConfig& layer : model.layers) {
    if (layer.mixer != MixerKind::kSharedBlock) continue;
    ++used;
    own += layer.shares_weights ? 0 : 1;
  }
  EXPECT_EQ(own, 2);
  EXPECT_EQ(used, 13);
  EXPECT_EQ(model.layer_count(), 81 + 13);
  // Model FLOPs count the products of all uses, and 7 an element of a state for the scans.
  EXPECT_DOUBLE_EQ(model_flops(model, state_step(Phase::kDecode)).base(),
                   flops_of(model, Phase::kDecode) + 81 * 7.0 * 7168 * 64);
}

}  // namespace
}  // namespace orrery::states_steps_test
