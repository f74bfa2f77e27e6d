// SPDX-License-Identifier: Apache-2.0
// The optimizer inside the backward pass (optimizer_in_backward).
#include "workloads/steps/training/backward_update.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "sim/config/diagnostics.h"
#include "sim/graph/verify.h"
#include "tests/unit/workloads/example_models.h"
#include "workloads/steps/figures/memory.h"
#include "workloads/steps/figures/statistics.h"
#include "workloads/steps/training/optimizer_step.h"

namespace orrery::backward_update_test {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr double kLayer = 49152 + 2 * 64, kTable = 64 * 96, kNorm = 64;

/// One micro-batch of one sequence on each replica, without clipping.
TrainingConfig inside(ParallelConfig parallel = {}) {
  TrainingConfig config;
  config.parallel = parallel;
  config.micro_batch = 1;
  config.global_batch = parallel.dp;
  config.sequence = 32;
  config.gradient_clipping = false;
  config.optimizer_in_backward = true;
  return config;
}

TrainingConfig behind(TrainingConfig config) {
  config.optimizer_in_backward = false;
  return config;
}

ClassStatistics updates(const LlmConfig& model, const TrainingConfig& config) {
  const Program program = build_training(model, config).program;
  return program_statistics(program).kernels.at("optimizer");
}

MemoryUse memory(const LlmConfig& model, const TrainingConfig& config) {
  return training_memory(model, config).front();
}

std::string message(const LlmConfig& model, const TrainingConfig& config) {
  try {
    require_supported(model, config);
  } catch (const config::ConfigError& error) {
    return error.what();
  }
  return "";
}

std::vector<ParallelConfig> plans() {
  return {{},
          {.tp = 2},
          {.tp = 2, .sp = true},
          {.dp = 2},
          {.dp = 2, .zero = 1},
          {.dp = 2, .zero = 2},
          {.dp = 2, .zero = 3},
          {.tp = 2, .sp = true, .dp = 2, .zero = 3}};
}

LlmConfig tied(LlmConfig model) {
  model.tied_embeddings = true;
  return model;
}

/// Each parameter is updated once: the same bytes, whenever it is.
TEST(BackwardUpdate, MovesTheBytesOfTheOptimizerThatItReplaces) {
  for (const LlmConfig& model : {small_llama(4), tied(small_llama(4))}) {
    for (const ParallelConfig& plan : plans()) {
      for (const OptimizerKind kind : {OptimizerKind::kAdam, OptimizerKind::kSgd}) {
        TrainingConfig config = inside(plan);
        config.optimizer = kind;
        const ClassStatistics in = updates(model, config), out = updates(model, behind(config));
        EXPECT_DOUBLE_EQ(in.bytes.base(), out.bytes.base());
        EXPECT_DOUBLE_EQ(in.vector_flops.base(), out.vector_flops.base());
        EXPECT_EQ(optimizer_state(model, config, 0), optimizer_state(model, behind(config), 0));
        EXPECT_EQ(memory(model, config).optimizer, memory(model, behind(config)).optimizer);
      }
    }
  }
}

/// Replicas add up the same gradients and gather the same weights.
TEST(BackwardUpdate, ReducesEachGradientOnce) {
  const LlmConfig model = small_llama(4);
  for (const ParallelConfig& plan : plans()) {
    const TrainingConfig config = inside(plan);
    const Program program = build_training(model, config, true).program;
    EXPECT_THAT(verify(program), IsEmpty());
    EXPECT_THAT(verify_tensors(program), IsEmpty());
    const auto in = role_statistics(program, 0).transfers;
    const auto out = role_statistics(build_training(model, behind(config)).program, 0).transfers;
    ASSERT_EQ(in.size(), out.size());
    for (const auto& [name, sum] : out)
      EXPECT_DOUBLE_EQ(in.at(name).bytes.base(), sum.bytes.base()) << name;
  }
}

/// Short sequences keep little, so that the fullest time has the gradients of one layer, or of two
/// where replicas reduce the one while the other is made.
TEST(BackwardUpdate, HoldsTheGradientsOfALayer) {
  const LlmConfig model = small_llama(8);
  const auto gradients = [&](TrainingConfig config) {
    TrainingSoftware software;
    software.releases_gradients.value = true;
    config.software = std::make_shared<const TrainingSoftware>(software);
    config.sequence = 2;
    return memory(model, config).gradients.base();
  };
  EXPECT_DOUBLE_EQ(gradients(behind(inside())), 2 * (8 * kLayer + 2 * kTable + kNorm));
  EXPECT_DOUBLE_EQ(gradients(inside()), 2 * kLayer);
  EXPECT_DOUBLE_EQ(gradients(inside({.dp = 2})), 2 * 2 * kLayer);
}

TEST(BackwardUpdate, NeverNeedsMoreMemory) {
  for (const LlmConfig& model : {small_llama(1), small_llama(4), tied(small_llama(4))}) {
    for (const ParallelConfig& plan : plans()) {
      for (const bool releases : {false, true}) {
        for (const Recompute recompute : {Recompute::kNone, Recompute::kFull}) {
          TrainingSoftware software;
          software.releases_gradients.value = releases;
          TrainingConfig config = inside(plan);
          config.recompute = recompute;
          config.software = std::make_shared<const TrainingSoftware>(software);
          EXPECT_LE(memory(model, config).total().base(),
                    memory(model, behind(config)).total().base())
              << model.layers.size() << " layers, tied: " << model.tied_embeddings << ", tp "
              << plan.tp << ", dp " << plan.dp << ", zero " << plan.zero;
        }
      }
    }
  }
}

/// PyTorch's allocator on a model whose layers are larger than its segments.
TEST(BackwardUpdate, NeverReservesMoreMemory) {
  const LlmConfig model = library_model("llama_3_1_8b");
  for (const ParallelConfig& plan : {ParallelConfig{}, ParallelConfig{.dp = 8, .zero = 3}}) {
    TrainingConfig config = inside(plan);
    config.sequence = 4096;
    config.recompute = Recompute::kFull;
    EXPECT_LT(training_reserved(model, config, 0).base(),
              training_reserved(model, behind(config), 0).base());
  }
}

/// The table of tied ends has its gradient from the head to the embedding.
TEST(BackwardUpdate, KeepsTheGradientOfASharedTable) {
  LlmConfig model = tied(small_llama(2));
  model.vocabulary = 96000;
  const double table = 2 * 64 * 96000.0;
  TrainingConfig config = inside();
  config.sequence = 2;
  EXPECT_DOUBLE_EQ(memory(model, config).gradients.base(), table + 2 * kLayer);
}

/// Paged moments cross the link of the host there and back, in parts.
TEST(BackwardUpdate, MovesPagedMomentsInParts) {
  const LlmConfig model = small_llama(4);
  TrainingConfig config = inside();
  config.optimizer_states.placement = MomentPlacement::kPaged;
  config.moments_on_host = {Bytes(1e5)};
  const auto moved = [&](const TrainingConfig& of) {
    return role_statistics(build_training(model, of).program, 0)
        .transfers.at("send_receive host")
        .bytes.base();
  };
  EXPECT_NEAR(moved(config), 2e5, 1e-6);
  EXPECT_NEAR(moved(behind(config)), 2e5, 1e-6);
}

/// Adapters, and what is trained whole beside them.
TEST(BackwardUpdate, UpdatesAdapters) {
  const LlmConfig model = small_llama(4);
  TrainingConfig config = inside({.dp = 2});
  config.lora = TrainingLora{4, TrainingLora().target_modules};
  config.lora->modules_to_save = {SavedModule::kEmbedTokens, SavedModule::kLmHead};
  EXPECT_DOUBLE_EQ(updates(model, config).bytes.base(),
                   updates(model, behind(config)).bytes.base());
  EXPECT_LT(memory(model, config).gradients, memory(model, behind(config)).gradients);
}

TEST(BackwardUpdate, RefusesWhatNeedsAllGradients) {
  const LlmConfig model = small_llama(4);
  EXPECT_EQ(message(model, inside()), "");
  TrainingConfig config = inside();
  config.gradient_clipping = true;
  EXPECT_THAT(message(model, config), HasSubstr("gradient_clipping: false"));
  config = inside({.dp = 2});
  config.global_batch = 8;
  EXPECT_THAT(message(model, config), HasSubstr("got 4 micro-batches"));
  EXPECT_THAT(message(model, config), HasSubstr("batch.micro: 4"));
  EXPECT_THAT(message(model, inside({.pp = 2})), HasSubstr("pipeline stages"));
  config = inside();
  config.precision = Precision::kFp16;
  EXPECT_THAT(message(model, config), HasSubstr("loss scale"));
  config = inside();
  config.optimizer = OptimizerKind::kMuon;
  EXPECT_THAT(message(model, config), HasSubstr("adam and sgd"));
}

}  // namespace
}  // namespace orrery::backward_update_test
