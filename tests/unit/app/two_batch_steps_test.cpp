// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "sim/app/experiments/core/experiment.h"
#include "sim/app/experiments/core/simulate.h"
#include "sim/config/load.h"

namespace orrery::two_batch_steps_test {
namespace {

RunRecord simulated(const std::string& text, const std::vector<std::string>& set) {
  config::Diagnostics diagnostics;
  const config::Library library(ORRERY_SOURCE_DIR "/configs");
  return simulate(load_experiment(config::parse_yaml(text, "test.yaml", diagnostics), set,
                                  diagnostics, library));
}

constexpr const char* kStep =
    "{experiment: inference, system: dgx_h100, nodes: 2, model: qwen3_235b_a22b, precision: fp8, "
    "phase: decode, kv_length: 512, parallel: {tp: 1, dp: 16, ep: 16}, batch: {micro: 64}}";
const std::string kTurns = "two_batch_overlap=true";
const std::vector<std::string> kPrompts = {"phase=prefill", "kv_length=0", "batch.sequence=4096",
                                           "batch.micro=2"};

double of(const RunRecord& record, const char* name) { return record.find(name)->value; }

RunRecord step(std::vector<std::string> set, bool turns) {
  if (turns) set.push_back(kTurns);
  return simulated(kStep, set);
}

TEST(TwoBatchSteps, PromptsHideTheirExchanges) {
  const RunRecord one = step(kPrompts, false), two = step(kPrompts, true);
  EXPECT_LT(of(two, "step_time_s"), of(one, "step_time_s"));
  const char* exposed = "breakdown.exposed_communication_s";
  EXPECT_LT(of(two, exposed), of(one, exposed));
  // What is hidden cannot be more than exchanges took.
  EXPECT_GE(of(two, "step_time_s"), of(one, "step_time_s") - of(one, exposed));
}

TEST(TwoBatchSteps, KernelsTakeLongerInTwo) {
  const char* kernels = "breakdown.compute_s";
  EXPECT_GT(of(step({}, true), kernels), of(step({}, false), kernels));  // weights twice
}

TEST(TwoBatchSteps, ASmallStepIsAsEver) {
  const std::vector<std::string> few = {"batch.micro=31"};
  EXPECT_EQ(of(step(few, true), "step_time_s"), of(step(few, false), "step_time_s"));
  EXPECT_EQ(step(few, true).find("energy_j")->value, step(few, false).find("energy_j")->value);
}

TEST(TwoBatchSteps, ServingTakesTheTimeOfTheGraph) {
  const std::string served =
      "experiment: serving\nmodel: qwen3_235b_a22b\nserving:\n"
      "  workload: {concurrency: 1024, requests: 1024, input: 512, output: 2}\n"
      "  fleet: [{system: dgx_h100, nodes: 2, parallel: {tp: 1, dp: 16, ep: 16}, precision: fp8, "
      "two_batch_overlap: true, engine: {kind: sglang, quant_fusion: true, "
      "chunked_prefill_size: 32768, max_prefill_tokens: 32768}}]\n";
  // All prompts of 64 on each rank in one step, then their second tokens in another.
  const RunRecord record = simulated(served, {});
  ASSERT_EQ(of(record, "iterations"), 2);
  EXPECT_NEAR(of(record, "mean_tpot_ms") / (of(step({}, true), "step_time_s") * 1e3), 1, 0.005);
}

// DeepGEMM's products leave SMs to exchanges for as long as prompts take turns: a twelfth of the
// time. The first token includes 27.9 ms of the host; the prompts alone are 1.5 % faster than the
// step.
TEST(TwoBatchSteps, ServedPromptsKeepOffTheSmsOfExchangesAsStepsDo) {
  const std::string engine =
      "engine: {kind: sglang, quant_fusion: true, moe_runner_backend: deep_gemm";
  const std::string rest =
      "parallel: {tp: 1, dp: 16, ep: 16}, precision: fp8_block, two_batch_overlap: true, " + engine;
  const RunRecord served = simulated(
      "experiment: serving\nmodel: deepseek_v3\nserving:\n"
      "  workload: {concurrency: 1024, requests: 1024, input: 512, output: 2}\n"
      "  fleet: [{system: dgx_h100, nodes: 2, " +
          rest +
          ", host: {request: 27.9 ms}, chunked_prefill_size: 32768, "
          "max_prefill_tokens: 32768}}]\n",
      {});
  const RunRecord step = simulated(
      "{experiment: inference, system: dgx_h100, nodes: 2, model: deepseek_v3, phase: prefill, "
      "batch: {micro: 64, sequence: 512}, " +
          rest + "}}",
      {});
  EXPECT_NEAR(of(served, "mean_ttft_ms") / (of(step, "step_time_s") * 1e3), 1, 0.01);
}

}  // namespace
}  // namespace orrery::two_batch_steps_test
