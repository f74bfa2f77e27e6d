// SPDX-License-Identifier: Apache-2.0
#include "workloads/steps/figures/module_memory.h"

#include <gtest/gtest.h>

#include <map>
#include <string>

#include "tests/unit/workloads/example_models.h"
#include "workloads/layers/rank_parameters.h"

namespace orrery::module_memory_test {
namespace {

TrainingConfig config_of(const ParallelConfig& plan) {
  TrainingConfig config;
  config.parallel = plan;
  config.global_batch = 8 * plan.dp;
  config.sequence = 16;
  return config;
}

/// Under every plan parts add up to the memory of the stage, component by component.
TEST(ModuleMemory, AddsUpToThatOfTheStage) {
  for (const ParallelConfig& plan :
       {ParallelConfig{}, ParallelConfig{.tp = 2, .sp = true, .pp = 2},
        ParallelConfig{.pp = 4, .vpp = 2, .dp = 2}, ParallelConfig{.dp = 4, .zero = 3},
        ParallelConfig{.dp = 4, .ep = 4}}) {
    for (const Recompute recompute : {Recompute::kNone, Recompute::kFull}) {
      const LlmConfig model = plan.ep > 1 ? small_moe(8) : small_llama(8);
      TrainingConfig config = config_of(plan);
      config.recompute = recompute;
      const auto stages = training_memory(model, config);
      for (int stage = 0; stage < plan.pp; ++stage) {
        const MemoryUse& use = stages[static_cast<std::size_t>(stage)];
        ModuleMemory sum;
        for (const ModuleMemory& row : module_memory(model, config, stage, use)) {
          sum.parameters += row.parameters;
          sum.weights += row.weights;
          sum.gradients += row.gradients;
          sum.optimizer += row.optimizer;
          sum.activations += row.activations;
        }
        const auto held = stage_parameters(model, plan, placement_of(config), stage);
        EXPECT_EQ(sum.parameters, static_cast<double>(held.total()));
        EXPECT_NEAR(sum.weights / use.weights, 1, 1e-12);
        EXPECT_NEAR(sum.gradients / use.gradients, 1, 1e-12);
        EXPECT_NEAR(sum.optimizer / use.optimizer, 1, 1e-12);
        EXPECT_NEAR(sum.activations / use.activations, 1, 1e-12);
      }
    }
  }
}

/// A layer of small_llama has 2 (64 x 64) + 2 (64 x 32) in attention, 3 x 64 x 192 in its MLP, and
/// a norm of 64 in each. Of eight in-flight micro-batches of one stage one is alive at a time; its
/// layer keeps Korthikanti's tensors: for the MLP input of the norm, input, two columns before the
/// function and one behind it.
TEST(ModuleMemory, IsThatOfMatricesAndTensorsByHand) {
  const LlmConfig model = small_llama(4);
  const TrainingConfig config = config_of({.zero = 0});
  const MemoryUse use = training_memory(model, config).front();
  std::map<std::string, ModuleMemory> rows;
  for (const ModuleMemory& row : module_memory(model, config, 0, use)) rows[row.module] = row;
  const double attention = 4 * (2 * 64 * 64 + 2 * 64 * 32 + 64), mlp = 4 * (3 * 64 * 192 + 64.0);
  EXPECT_EQ(rows.at("attention").parameters, attention);
  EXPECT_EQ(rows.at("MLP").parameters, mlp);
  EXPECT_EQ(rows.at("embedding").parameters, 96 * 64);
  EXPECT_EQ(rows.at("head and loss").parameters, 96 * 64 + 64);
  EXPECT_NEAR(rows.at("MLP").weights.base(), 2 * mlp, 1e-6);
  EXPECT_NEAR(rows.at("MLP").optimizer.base(), 12 * mlp, 1e-6);
  EXPECT_NEAR(rows.at("MLP").activations.base(), 4 * 16 * 2.0 * (64 + 64 + 3 * 192), 1e-6);
}

}  // namespace
}  // namespace orrery::module_memory_test
