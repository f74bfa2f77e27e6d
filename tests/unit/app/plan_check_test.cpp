// SPDX-License-Identifier: Apache-2.0
#include "sim/app/experiments/steps/plan_check.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sim/app/experiments/collective.h"
#include "sim/app/experiments/steps/inference.h"
#include "sim/app/experiments/training/training.h"
#include "sim/app/pricing/machine_network.h"
#include "sim/config/load.h"

namespace orrery::plan_check_test {
namespace {

using testing::HasSubstr;

LoadedExperiment load(const std::string& text) {
  config::Diagnostics diagnostics;
  config::Node node = config::parse_yaml(text, "test.yaml", diagnostics);
  diagnostics.throw_if_errors();
  return load_experiment(std::move(node), {}, diagnostics);
}

std::string decode(const std::string& plan, const std::string& model = "deepseek_r1") {
  return "experiment: inference\nsystem: gb200_nvl72\nnodes: 2\nmodel: " + model +
         "\nphase: decode\nkv_length: 1024\nbatch: {micro: 1}\nprecision: fp8\nparallel: " + plan +
         "\n";
}

TEST(PlanCheck, WarnsOfGroupsThatLieOnTwoSystemsThoughTheyFitIntoOne) {
  const std::string warning = check_plan(load(decode("{dp: 128, ep: 64}")));
  // Ranks 64 to 127: 8 on the first rack of 72, 56 on the second.
  EXPECT_THAT(warning,
              HasSubstr("test.yaml:9:25: warning: 1 of 2 expert parallel groups lie on two "
                        "systems of 72 ranks, though each would fit into one"));
  EXPECT_THAT(warning, HasSubstr("groups of 36 or 72 ranks stay inside"));
}

TEST(PlanCheck, OfServingWarnsAsThatOfAStep) {
  const auto served = [](const std::string& plan) {
    return check_plan(load(
        "experiment: serving\nmodel: qwen3_30b_a3b\nserving:\n  workload: {concurrency: 1, "
        "requests: 1, input: 100, output: 2}\n  fleet:\n    - system: gb200_nvl72\n      nodes: "
        "3\n      precision: fp8\n      parallel: " +
        plan + "\n      engine: {kind: vllm}\n"));
  };
  EXPECT_THAT(served("{dp: 128, ep: 64}"),
              HasSubstr("1 of 2 expert parallel groups lie on two systems of 72 ranks"));
  EXPECT_THAT(served("{dp: 144, ep: 144}"),
              HasSubstr("16 ranks hold copies of experts (redundant experts)"));
  EXPECT_EQ(served("{dp: 64, ep: 64}"), "");
}

TEST(PlanCheck, SaysNothingOfGroupsThatStayInsideOrCannot) {
  EXPECT_EQ(check_plan(load(decode("{dp: 64, ep: 64}"))), "");
  EXPECT_EQ(check_plan(load(decode("{dp: 144, ep: 72}"))), "");
  EXPECT_EQ(check_plan(load(decode("{dp: 144, ep: 144}"))), "");
  EXPECT_EQ(check_plan(load(decode("{tp: 8, dp: 18, ep: 36}"))), "");
}

TEST(PlanCheck, SaysWhatRanksWithoutAnExpertHold) {
  EXPECT_THAT(check_plan(load(decode("{dp: 72, ep: 72}", "qwen3_30b_a3b"))), "");  // 128 experts
  EXPECT_THAT(check_plan(load(decode("{dp: 144, ep: 144}", "qwen3_30b_a3b"))),
              HasSubstr("128 experts on 144 ranks: 16 ranks hold copies of experts (redundant "
                        "experts)"));
}

TEST(PlanCheck, TellsHowManyRanksWouldHoldTheExperts) {
  // 256 experts of 58 layers, 3 x 7168 x 2048 bytes each: 654 GB on every rank. Over 4 ranks 163 GB
  // and the 19 GB of the rest are too many for nine tenths of 198.7 GB; over 8 they are 82 GB.
  const LoadedExperiment all = load(decode("{dp: 8, etp: 1}"));
  EXPECT_THAT(expert_parallel_hint(all.as<ModelExperiment>()),
              HasSubstr("every rank holds all 256 experts; ep: 8 holds it: "));
  EXPECT_EQ(expert_parallel_hint(load(decode("{dp: 8, ep: 8}")).as<ModelExperiment>()), "");
  EXPECT_EQ(expert_parallel_hint(load(decode("{dp: 8}", "llama_3_1_70b")).as<ModelExperiment>()),
            "");
  EXPECT_EQ(expert_parallel_hint(load(decode("{dp: 2, etp: 1}")).as<ModelExperiment>()),
            "");  // two are not enough
}

TEST(Experiment, SaysTheFormatOfTheCacheAndOfKeptInputs) {
  const std::string cache = decode("{tp: 8}", "llama_3_1_70b");
  const auto kv_bytes = [](const std::string& text) {
    const LoadedExperiment loaded = load(text);
    const auto& e = loaded.as<InferenceExperiment>();
    return worst_stage(e.memory(e.model.build(), e.parallel)).kv_cache.base();
  };
  // One KV head of 8 a rank: 2 x 128 elements x 80 layers x 1025 tokens.
  EXPECT_DOUBLE_EQ(kv_bytes(cache), 2.0 * 128 * 80 * 1025 * 2);
  EXPECT_DOUBLE_EQ(kv_bytes(cache + "kv_precision: fp8\n"), 2.0 * 128 * 80 * 1025);
  const std::string step =
      "experiment: training\nsystem: dgx_h100\nmodel: llama_3_1_8b\nprecision: fp8\n"
      "batch: {micro: 1, sequence: 1024}\n";
  // As Transformer Engine keeps them, where nobody says.
  EXPECT_TRUE(load(step).as<TrainingExperiment>().training().narrow_inputs);
  EXPECT_FALSE(load(step + "activation_precision: bf16\n")
                   .as<TrainingExperiment>()
                   .training()
                   .narrow_inputs);
}

/// Eight H100 as a torus of 2 x 2 x 2, on which the tuner of the DGX has no say.
TEST(MachineNetwork, ATopologyThatTheLibraryIsNotTunedForTakesTheFastestAlgorithm) {
  const auto collective = [](const std::string& algorithm) {
    return load(
        "experiment: collective\n"
        "system: {extends: dgx_h100, scale_up: {kind: torus, torus: [2, 2, 2]}}\n"
        "collective: {kind: all_reduce, bytes: 1 GiB, algorithm: " +
        algorithm + "}\n");
  };
  const auto time = [&](const std::string& algorithm) {
    const LoadedExperiment loaded = collective(algorithm);
    const auto& e = loaded.as<CollectiveExperiment>();
    const MachineNetwork network(e.machine(), {}, {{algorithm}, "auto"});
    return network.start().price(e.collective->transfer({0, 1, 2, 3, 4, 5, 6, 7})).isolated_time;
  };
  for (const char* algorithm : {"torus", "tree", "ring"}) EXPECT_LE(time("auto"), time(algorithm));
}

}  // namespace
}  // namespace orrery::plan_check_test
