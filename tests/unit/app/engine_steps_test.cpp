// SPDX-License-Identifier: Apache-2.0
// Steps of inference with the kernels of an engine: what fusions, early launches and draft tokens
// change.
#include <gtest/gtest.h>

#include "sim/app/experiments/core/experiment.h"
#include "sim/app/experiments/core/simulate.h"
#include "sim/config/load.h"

namespace orrery::engine_steps_test {
namespace {

RunRecord simulated(const std::string& text, const std::vector<std::string>& set) {
  config::Diagnostics diagnostics;
  const config::Library library(ORRERY_SOURCE_DIR "/configs");
  return simulate(load_experiment(config::parse_yaml(text, "test.yaml", diagnostics), set,
                                  diagnostics, library));
}

double of(const RunRecord& record, const char* name) { return record.find(name)->value; }
double step_time(const std::string& text, const std::vector<std::string>& set) {
  return of(simulated(text, set), "step_time_s");
}

/// Less than the launch of any kernel takes.
const std::vector<std::string> kSimple = {"system.accelerator.launch.dependent=0.05 us",
                                          "contention.transfers=false"};

std::vector<std::string> with(std::vector<std::string> more) {
  more.insert(more.begin(), kSimple.begin(), kSimple.end());
  return more;
}

constexpr const char* kDense =
    "{experiment: inference, system: dgx_h100, model: llama_3_1_8b, phase: decode, kv_length: 512, "
    "parallel: {tp: 8}, batch: {micro: 4}, engine: {kind: vllm}}";
constexpr const char* kExperts =
    "{experiment: inference, system: dgx_h100, model: qwen3_30b_a3b, phase: decode, kv_length: "
    "512, batch: {micro: 4}, engine: {kind: vllm}}";

TEST(EngineSteps, EarlyLaunchesSaveTheirTimeForEachKernelOfALayer) {
  // Norm, qkv, rotary, attention, output; norm, up, function, down: 9 kernels of each of 32 layers.
  const std::string one =
      "{experiment: inference, system: dgx_h100, model: llama_3_1_8b, phase: decode, kv_length: "
      "512, batch: {micro: 4}, engine: {kind: vllm, quant_fusion: true}}";
  const double off = step_time(one, with({"engine.kernels.pdl=off"}));
  const double on = step_time(one, with({"engine.kernels.pdl=on"}));
  EXPECT_NEAR(off - on, 32 * 9 * 0.05e-6, 1e-9);
  // An A100 has no such launches.
  const std::vector<std::string> old = {"system=dgx_a100"};
  EXPECT_EQ(step_time(one, {"system=dgx_a100", "engine.kernels.pdl=on"}), step_time(one, old));
}

TEST(EngineSteps, HeadsReadSharedKeysEachForItselfBeforeXqa) {
  const std::string shared =
      "{experiment: inference, system: dgx_h100, model: llama_3_1_8b, phase: decode, kv_length: "
      "4096, batch: {micro: 64}, engine: {kind: tensorrt_llm, version: 0.8, kernels: {pdl: off}}}";
  const double after = step_time(shared, {});
  const double before = step_time(shared, {"engine.version=0.7"});
  // 34 GB of keys and values take 10 ms of 3.35 TB/s, and 31 more where four heads read each.
  EXPECT_GT(before - after, 0.02);
  EXPECT_LT(before - after, 0.06);
}

TEST(EngineSteps, NormsWithinAllReducesSaveTheirLaunchesAndOneRead) {
  const std::string barrier = "engine.all_reduce.barrier=0 us";
  const double apart = step_time(kDense, with({barrier, "engine.kernels.allreduce_norm=off"}));
  const double fused = step_time(kDense, with({barrier, "engine.kernels.allreduce_norm=on"}));
  // Two norms of each of 32 layers, of 2 to 3 us that are launches nearly all.
  EXPECT_GT(apart - fused, 64 * 1.5e-6);
  EXPECT_LT(apart - fused, 64 * 4e-6);
  // 512 KiB is the most of 8 ranks of Hopper: 64 tokens of 4,096 columns in 16 bits.
  const std::vector<std::string> most = {"batch.micro=64"}, more = {"batch.micro=65"};
  const auto saved = [](std::vector<std::string> set) {
    std::vector<std::string> on = set;
    on.push_back("engine.kernels.allreduce_norm=on");
    set.push_back("engine.kernels.allreduce_norm=off");
    return step_time(kDense, set) - step_time(kDense, on);
  };
  EXPECT_GT(saved(most), 0);
  EXPECT_EQ(saved(more), 0);
}

TEST(EngineSteps, RoutersApartHaveThreeMoreKernelsALayer) {
  // Softmax, top-k, sum, quotient in the place of one; 48 layers.
  const auto host = [](const char* router) {
    return simulated(kExperts, {std::string("engine.kernels.router=") + router});
  };
  const double more = of(host("off"), "step_time_s") - of(host("on"), "step_time_s");
  EXPECT_GT(more, 48 * 3 * 1e-6);
  EXPECT_LT(more, 48 * 3 * 4e-6);
}

TEST(EngineSteps, VersionsSayWhatIsFused) {
  const auto time = [](const char* version, const char* router) {
    return step_time(kExperts, {std::string("engine.version=") + version,
                                std::string("engine.kernels.router=") + router});
  };
  EXPECT_EQ(time("0.10", "auto"), time("0.10", "off"));
  EXPECT_EQ(time("0.11", "auto"), time("0.11", "on"));
}

constexpr const char* kLatent =
    "{experiment: inference, system: dgx_h100, nodes: 2, model: deepseek_v3, phase: decode, "
    "kv_length: 1024, parallel: {dp: 16, ep: 16}, precision: fp8, batch: {micro: 32}}";

TEST(EngineSteps, GuessesGiveMoreTokensOfLongerSteps) {
  const RunRecord alone = simulated(kLatent, {});
  const RunRecord two =
      simulated(kLatent, {"speculative={num_speculative_tokens: 1, acceptance_length: 1.6}"});
  EXPECT_GT(of(two, "step_time_s"), of(alone, "step_time_s"));
  EXPECT_NEAR(of(two, "tokens_per_s") * of(two, "step_time_s"), 16 * 32 * 1.6, 1e-6);
  EXPECT_NEAR(of(two, "tokens_per_s_per_user") * of(two, "step_time_s"), 1.6, 1e-9);
  EXPECT_GT(of(two, "memory.weights_bytes"), of(alone, "memory.weights_bytes"));
}

TEST(EngineSteps, AModelThatGuessesForNothingLeavesItsVerification) {
  // Draft tokens out of the prompt cost what a step with as many queries does.
  const double drafted = step_time(
      kLatent, {"speculative={method: ngram, num_speculative_tokens: 2, acceptance_length: 2}"});
  const double queried =
      step_time(kLatent, {"phase=mixed", "kv_length=0", "batch={}",
                          "mixed={queries: 3, decodes: [{context: 1024, count: 32}]}"});
  EXPECT_DOUBLE_EQ(drafted, queried);
}

TEST(EngineSteps, MorePassesTakeMoreTimeAllAlike) {
  const auto time = [](const char* draft_tokens) {
    return step_time(kLatent, {std::string("speculative={method: mtp, acceptance_length: 1, "
                                           "num_speculative_tokens: ") +
                               draft_tokens + "}"});
  };
  const auto verified = [](const char* queries) {
    return step_time(kLatent, {"phase=mixed", "kv_length=0", "batch={}",
                               std::string("mixed={queries: ") + queries +
                                   ", decodes: [{context: 1024, count: 32}]}"});
  };
  // The first pass takes all tokens, the other three one of a sequence each.
  const double drafts = time("4") - verified("5");
  EXPECT_GT(drafts, time("1") - verified("2"));
}

TEST(EngineSteps, BalancednessIsTheMeanOverTheHeaviest) {
  const std::string even = "expert_routing={balancedness: 1}";
  EXPECT_DOUBLE_EQ(of(simulated(kLatent, {even}), "expert_skew"), 1);
  const RunRecord uneven = simulated(kLatent, {"expert_routing={balancedness: 0.8}"});
  EXPECT_DOUBLE_EQ(of(uneven, "expert_skew"), 1.25);
  EXPECT_GT(of(uneven, "step_time_s"), step_time(kLatent, {even}));
}

TEST(EngineSteps, TurnsOfDecodesSendAndFetchByKernels) {
  const std::vector<std::string> turns = {"two_batch_overlap=true", "batch.micro=64"};
  std::vector<std::string> prompts = turns;
  prompts.insert(prompts.end(), {"phase=prefill", "kv_length=0", "batch.sequence=512"});
  // Four times 58 layers of experts, two batches: kernels that take their launch at least.
  EXPECT_GT(of(simulated(kLatent, turns), "breakdown.compute_s"),
            of(simulated(kLatent, {"batch.micro=64"}), "breakdown.compute_s"));
  EXPECT_GT(of(simulated(kLatent, prompts), "step_time_s"), 0);
}

}  // namespace
}  // namespace orrery::engine_steps_test
