// SPDX-License-Identifier: Apache-2.0
// Steps against what must hold of any machine; each case was a counter-example once.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "sim/app/experiments/core/experiment.h"
#include "sim/app/sweeps/workers/run_point.h"

namespace orrery::step_laws_test {
namespace {

const std::string kConfigs = ORRERY_SOURCE_DIR "/configs";

/// Seconds of a decode step; in a process of its own, as one process holds one machine.
double step_s(const std::vector<std::string>& changes) {
  const LoadedExperiment loaded = load_experiment(kConfigs + "/experiments/deepseek_r1_decode.yaml",
                                                  changes, config::Library(kConfigs));
  return simulate_isolated(loaded).record.find("step_time_s")->value;
}

std::vector<std::string> with(std::vector<std::string> changes, const std::string& more) {
  changes.push_back(more);
  return changes;
}

/// Llama-3.1-70B on eight ranks.
const std::vector<std::string> kLlama = {"system=dgx_h100",  "model=llama_3_1_70b",
                                         "parallel={tp: 8}", "batch.micro=64",
                                         "kv_length=4096",   "precision=bf16"};

std::vector<std::string> gemma(const std::string& system, int ranks) {
  return {"system=" + system, "model=gemma_2_9b",
          "parallel={tp: 1, dp: " + std::to_string(ranks) + "}", "precision=bf16"};
}

// A rank's weights are 141 GB / 8 = 17.6 GB and its cache is 5 GB: what a layer reads is long gone
// from an L2 of 2 GiB when the next step reads it.
TEST(StepLaws, WeightsDoNotStayInAnL2ThatCannotHoldTheStep) {
  const double shipped = step_s(kLlama);
  for (const char* capacity : {"400 MiB", "2 GiB"}) {
    const double larger =
        step_s(with(kLlama, std::string("system.accelerator.cache.capacity=") + capacity));
    EXPECT_LE(larger, shipped * (1 + 1e-9)) << capacity;
    EXPECT_GE(larger, shipped * 0.995) << capacity;
  }
}

// What fits stays: gemma_3_1b has 2 GB of weights.
TEST(StepLaws, AnL2ThatHoldsAllOfAStepMakesItFaster) {
  const std::vector<std::string> small = {"system=dgx_h100", "model=gemma_3_1b", "parallel={tp: 1}",
                                          "batch.micro=1",   "kv_length=1024",   "precision=bf16"};
  const double shipped = step_s(small);
  EXPECT_LT(step_s(with(small, "system.accelerator.cache.capacity=8 GiB")), 0.9 * shipped);
}

TEST(StepLaws, ALongerCacheNeverMakesAStepFaster) {
  for (const char* system : {"dgx_h100", "dgx_b200", "gb200_nvl72"}) {
    double before = 0;
    for (const int tokens : {512, 1024, 2048, 4096}) {
      const double now = step_s(with(gemma(system, 1), "kv_length=" + std::to_string(tokens)));
      EXPECT_GE(now, before * (1 - 1e-9)) << system << " " << tokens;
      before = now;
    }
  }
}

TEST(StepLaws, MoreSequencesNeverMakeAStepFaster) {
  double before = 0;
  for (const int sequences : {1, 2, 4, 8, 16, 32}) {
    std::vector<std::string> changes = with(gemma("gb200_nvl72", 8), "kv_length=512");
    const double now = step_s(with(changes, "batch.micro=" + std::to_string(sequences)));
    EXPECT_GE(now, before * (1 - 1e-9)) << sequences;
    before = now;
  }
}

// Routing deals rows out at random, so that of eight experts 7.99999 get some of 512: 64.0001 rows
// each, of which next to none needs a second tile of 64. Of balanced rows of the operator tables of
// H100 and H200 (AIConfigurator) one pair in a hundred is faster for twice the tokens.
TEST(StepLaws, TwiceTheRowsOfExpertsAreNotFaster) {
  const std::vector<std::string> prompts = {"phase=prefill", "batch.sequence=64", "nodes=1",
                                            "precision=fp8_block"};
  const std::vector<std::pair<int, std::vector<std::string>>> cases = {
      {128,
       {"system=dgx_b200", "model=mixtral_8x22b", "parallel={tp: 4}", "precision=fp8_block",
        "kv_length=142", "nodes=1"}},
      {1, with(with(with(prompts, "system=dgx_h200"), "model=deepseek_v3"),
               "parallel={tp: 2, dp: 4, ep: 8}")},
      {2,
       with(with(with(prompts, "system=dgx_b200"), "model=deepseek_moe_16b"), "parallel={dp: 4}")}};
  for (const auto& [fewest, changes] : cases) {
    double before = 0;
    for (const int sequences : {fewest, 2 * fewest, 4 * fewest}) {
      const double now = step_s(with(changes, "batch.micro=" + std::to_string(sequences)));
      EXPECT_GE(now, before * (1 - 1e-9)) << changes.front() << " " << sequences;
      before = now;
    }
  }
}

TEST(StepLaws, MoreUnitsSlowAStepByOnePercentAtMost) {
  const std::vector<std::string> changes = {
      "system=dgx_h200", "model=deepseek_r1", "parallel={tp: 4, dp: 2, ep: 8}",
      "batch.micro=16",  "kv_length=4096",    "precision=fp8"};
  double least = INFINITY;
  for (const int units : {132, 136, 140, 148, 160, 176, 198, 264}) {
    const double now =
        step_s(with(changes, "system.accelerator.compute.units=" + std::to_string(units)));
    EXPECT_LE(now, least * 1.01) << units;
    least = std::min(least, now);
  }
}

}  // namespace
}  // namespace orrery::step_laws_test
