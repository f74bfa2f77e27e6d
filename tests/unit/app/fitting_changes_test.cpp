// SPDX-License-Identifier: Apache-2.0
#include "sim/app/experiments/training/fitting_changes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "sim/app/experiments/core/simulate.h"
#include "tests/unit/app/loaded_text.h"
#include "tests/unit/workloads/example_models.h"
#include "workloads/steps/figures/memory.h"

namespace orrery::fitting_changes_test {
namespace {

using ::testing::HasSubstr;
using namespace literals;

LlmConfig model() {
  LlmConfig model = small_llama(8);
  model.hidden = 1024;
  model.vocabulary = 8192;
  model.attention.kv_heads = 8;
  model.attention.head_dim = 128;
  model.mlp.intermediate = 4096;
  return model;
}

TrainingConfig config() {
  TrainingConfig config;
  config.parallel = {.dp = 4, .zero = 0};
  config.micro_batch = 4;
  config.global_batch = 32;
  config.sequence = 2048;
  return config;
}

Bytes needs(const TrainingConfig& config) {
  return worst_stage(training_memory(model(), config)).total();
}

bool offers(const std::vector<FittingChange>& changes, const std::string& text) {
  return std::any_of(changes.begin(), changes.end(),
                     [&](const FittingChange& change) { return change.text == text; });
}

/// Every change that is named fits, and needs what the memory model says of it.
TEST(FittingChanges, AreThoseThatFit) {
  const Bytes now = needs(config());
  const auto changes = fitting_changes(model(), config(), {now - 1_B, true}).alone;
  ASSERT_FALSE(changes.empty());
  for (const FittingChange& change : changes) EXPECT_LT(change.needs, now);
  TrainingConfig sharded = config();
  sharded.parallel.zero = 1;
  EXPECT_TRUE(offers(changes, "parallel.zero: 1"));
  EXPECT_EQ(changes.front().needs, needs(sharded));
  EXPECT_TRUE(offers(changes, "optimizer_states: {momentum: bf16, variance: bf16}"));
  EXPECT_TRUE(offers(changes, "optimizer_offload.fraction: 0.25"));
  EXPECT_TRUE(offers(changes, "recompute: full"));
  EXPECT_TRUE(offers(changes, "activation_offload: 1"));
  EXPECT_TRUE(offers(changes, "batch.micro: 2"));
  EXPECT_TRUE(offers(changes, "parallel: {tp: 2, dp: 2}"));
}

/// One byte less, and a layer more has to be recomputed.
TEST(FittingChanges, RecomputeNoMoreLayersThanItTakes) {
  for (const int layers : {1, 3, 7}) {
    TrainingConfig block = config();
    block.recompute = Recompute::kFull;
    block.recompute.method = RecomputeMethod::kBlock;
    block.recompute.num_layers = layers;
    const Bytes usable = needs(block);
    const auto text = [](int count) {
      return "recompute: {granularity: full, method: block, num_layers: " + std::to_string(count) +
             "}";
    };
    EXPECT_TRUE(offers(fitting_changes(model(), config(), {usable, false}).alone, text(layers)));
    if (layers == 7) continue;
    EXPECT_TRUE(
        offers(fitting_changes(model(), config(), {usable - 1_B, false}).alone, text(layers + 1)));
  }
}

/// Where nothing fits alone two changes are tried, and each pair that is named fits.
TEST(FittingChanges, AreTwoWhereNoneIsEnough) {
  TrainingConfig both = config();
  both.parallel.zero = 3;
  both.recompute = Recompute::kFull;
  const FittingChanges changes = fitting_changes(model(), config(), {needs(both), false});
  EXPECT_TRUE(changes.alone.empty());
  ASSERT_FALSE(changes.pairs.empty());
  EXPECT_LE(changes.pairs.size(), 3U);
  for (const FittingChange& change : changes.pairs) EXPECT_LE(change.needs, needs(both));
  EXPECT_THAT(fitting_text(changes), HasSubstr("; fits with two changes: "));
  EXPECT_THAT(fitting_text(changes), HasSubstr(" and "));
}

TEST(FittingChanges, AreNoneWhereNothingHelps) {
  const FittingChanges changes = fitting_changes(model(), config(), {1_MB, true});
  EXPECT_TRUE(changes.alone.empty());
  EXPECT_TRUE(changes.pairs.empty());
  EXPECT_THAT(fitting_text(changes), HasSubstr("no two of them do"));
  EXPECT_EQ(fitting_text({{{"recompute: full", 61_GB}, {"batch.micro: 1", 60_GB}}, {}}),
            "; fits with, each alone: recompute: full (61.0 GB), batch.micro: 1 (60.0 GB)");
}

TEST(FittingChanges, StandInTheReasonOfAStepThatDoesNotFit) {
  const LoadedExperiment loaded = test::load(
      "{experiment: training, system: dgx_h100, model: llama_3_1_8b, parallel: {tp: 2, dp: 4}, "
      "batch: {global: 32, micro: 2, sequence: 8192}, memory_reserve: 0.2}");
  const RunRecord record = simulate(loaded);
  EXPECT_EQ(record.status, RunStatus::kInfeasible);
  EXPECT_THAT(record.reason, HasSubstr("most of it: activations "));
  EXPECT_THAT(record.reason, HasSubstr("pass of micro-batch 0"));
  EXPECT_THAT(record.reason, HasSubstr("fits with, each alone: "));
  EXPECT_THAT(record.reason, HasSubstr("recompute: full ("));
}

}  // namespace
}  // namespace orrery::fitting_changes_test
