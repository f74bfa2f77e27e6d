// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "sim/app/experiments/core/simulate.h"
#include "sim/app/experiments/serving.h"
#include "sim/app/experiments/serving/transfer.h"
#include "tests/unit/app/loaded_text.h"

namespace orrery::context_parallel_test {
namespace {

using test::load;

RunRecord run_shared(const std::string& text, const std::vector<std::string>& set = {}) {
  return simulate(load(text, set));
}

double figure(const RunRecord& record, const char* name) { return record.find(name)->value; }

double seconds_of(const RunRecord& record, const std::string& name) {
  for (const ClassBreakdown& c : record.classes)
    if (c.name == name) return c.time_s;
  ADD_FAILURE() << "no " << name;
  return 0;
}

constexpr const char* kDecode =
    "{experiment: inference, system: dgx_h100, model: llama_3_1_8b, phase: decode, kv_precision: "
    "fp8, kv_length: 524287, batch: {micro: 1}}";
constexpr const char* kPrompt =
    "{experiment: inference, system: dgx_h100, model: llama_3_1_8b, phase: prefill, batch: {micro: "
    "1, sequence: 131072}}";

TEST(ContextParallelSteps, AttentionOfARankIsThatOfAnEighthOfTheContext) {
  const std::string burst = "system.accelerator.power.state=burst";
  const RunRecord eight = run_shared(kDecode, {burst, "parallel.cp=8"});
  const double alone =
      seconds_of(run_shared(kDecode, {burst, "kv_length=65535"}), "attention_decode");
  EXPECT_DOUBLE_EQ(seconds_of(eight, "attention_decode"), alone);
  // A launch and the split of keys are left beside an eighth of the bytes.
  const double whole = seconds_of(run_shared(kDecode, {burst}), "attention_decode");
  EXPECT_GT(whole / alone, 6);
  EXPECT_LT(whole / alone, 8);
  // Exchanges come beside it: sums and outputs in each of 32 layers.
  EXPECT_GT(seconds_of(eight, "all_reduce cp"), 0);
  EXPECT_GT(figure(eight, "step_time_s"), seconds_of(eight, "attention_decode") +
                                              seconds_of(eight, "all_reduce cp") +
                                              seconds_of(eight, "all_gather cp"));
}

TEST(ContextParallelSteps, LongerContextsGainMore) {
  double before = 0;
  for (const char* length : {"1023", "8191", "65535", "524287"}) {
    const std::string kv_length = std::string("kv_length=") + length;
    const double gain = figure(run_shared(kDecode, {kv_length}), "step_time_s") /
                        figure(run_shared(kDecode, {kv_length, "parallel.cp=8"}), "step_time_s");
    EXPECT_GT(gain, before) << length;
    before = gain;
  }
  EXPECT_GT(before, 2);
  EXPECT_LT(before, 8);
}

/// Without a power cap, which exchanges give kernels more room below.
TEST(ContextParallelSteps, LongerPromptsGainMore) {
  double before = 0;
  for (const char* tokens : {"1024", "8192", "131072"}) {
    const std::string sequence = std::string("batch.sequence=") + tokens;
    const std::string burst = "system.accelerator.power.state=burst";
    const double gain =
        figure(run_shared(kPrompt, {sequence, burst}), "step_time_s") /
        figure(run_shared(kPrompt, {sequence, burst, "parallel.cp=8"}), "step_time_s");
    EXPECT_GT(gain, before) << tokens;
    before = gain;
  }
  EXPECT_GT(before, 6.5);
  EXPECT_LT(before, 8);
}

constexpr const char* kServed =
    "experiment: serving\nmodel: llama_3_1_8b\nserving:\n"
    "  workload: {rate: 1 /s, requests: 1, input: 8000, output: 4}\n"
    "  fleet: [{system: dgx_h100, parallel: {cp: 4}, engine: {kind: vllm, host: {}, "
    "custom_all_reduce: 0 B}}]\n";

TEST(ContextParallelServing, ARequestAloneTakesItsSteps) {
  const RunRecord record = run_shared(kServed);
  const auto step = [](const std::string& keys) {
    return 1e3 * figure(run_shared("{experiment: inference, system: dgx_h100, model: llama_3_1_8b, "
                                   "parallel: {cp: 4}, batch: {micro: 1, sequence: 8000}, " +
                                   keys + "}"),
                        "step_time_s");
  };
  EXPECT_NEAR(figure(record, "mean_ttft_ms") / step("phase: prefill"), 1, 0.005);
  EXPECT_NEAR(figure(record, "mean_tpot_ms") / step("phase: decode, kv_length: 8001"), 1, 0.005);
}

std::vector<ServingMemory> memory_of(const std::string& text, const std::vector<std::string>& set) {
  const LoadedExperiment loaded = load(text, set);
  const auto& served = loaded.as<ServingExperiment>();
  return served.fleet().memory(served.serving.fleet);
}

TEST(ContextParallelServing, ABlockHoldsSoManyMoreTokens) {
  const std::string cp = "serving.fleet.0.parallel.cp=";
  const ServingMemory one = memory_of(kServed, {cp + "1"}).front(),
                      eight = memory_of(kServed, {cp + "8"}).front();
  EXPECT_EQ(one.block_tokens, 16);
  EXPECT_EQ(eight.block_tokens, 128);
  EXPECT_DOUBLE_EQ(eight.block.base(), one.block.base());
  EXPECT_EQ(eight.weights, one.weights);
  // Activations are those of fewer tokens: there are a few blocks more.
  EXPECT_LE(one.blocks, eight.blocks);
  EXPECT_LE(static_cast<double>(eight.blocks - one.blocks) * one.block,
            one.working - eight.working + one.block);
  EXPECT_EQ(figure(run_shared(kServed, {cp + "8"}), "kv_tokens"),
            static_cast<double>(eight.blocks * 128));
}

constexpr const char* kLatent =
    "experiment: serving\nmodel: deepseek_v2_lite\nserving:\n"
    "  workload: {rate: 1 /s, requests: 1, input: 4096, output: 4}\n"
    "  fleet: [{system: dgx_h100, parallel: {tp: 8, ep: 8}, engine: {kind: vllm}}]\n";

TEST(ContextParallelServing, ALatentIsHeldOnceNotByEachRank) {
  const std::string dcp = "serving.fleet.0.parallel.dcp=8";
  const ServingMemory copies = memory_of(kLatent, {}).front(),
                      once = memory_of(kLatent, {dcp}).front();
  EXPECT_EQ(once.blocks, copies.blocks);
  EXPECT_EQ(once.block_tokens, 8 * copies.block_tokens);
  EXPECT_EQ(figure(run_shared(kLatent, {dcp}), "kv_tokens"),
            8 * figure(run_shared(kLatent), "kv_tokens"));
}

/// A rank's part of a token, times the ranks that hold a request.
TEST(ContextParallelServing, ACacheCrossesOverThePortsOfAllRanksThatHoldIt) {
  const auto port = [](const char* text, const std::vector<std::string>& set) {
    const LoadedExperiment loaded = load(text, set);
    const auto& e = loaded.as<ServingExperiment>();
    return kv_ports(e.model.build(), e.serving, e.fleet().memory(e.serving.fleet)).front();
  };
  const std::string plan = "serving.fleet.0.parallel";
  const KvPort one = port(kServed, {plan + ".cp=1"}), four = port(kServed, {});
  EXPECT_DOUBLE_EQ(one.size.token.base(), 32.0 * 2 * 8 * 128 * 2);
  EXPECT_DOUBLE_EQ(four.size.token.base(), one.size.token.base());
  EXPECT_DOUBLE_EQ(four.bandwidth.base(), 4 * one.bandwidth.base());
  const KvPort copies = port(kLatent, {}), once = port(kLatent, {plan + ".dcp=8"});
  EXPECT_DOUBLE_EQ(once.size.token.base() * 8, copies.size.token.base());
  EXPECT_EQ(once.bandwidth, copies.bandwidth);
}

TEST(ContextParallelServing, PromptsAndAnswersMayBeSharedInOtherWays) {
  const std::string apart =
      "experiment: serving\nmodel: deepseek_v2_lite\nserving:\n"
      "  workload: {rate: 1 /s, requests: 3, input: 16000, output: 8}\n"
      "  fleet:\n"
      "    - {system: dgx_h100, role: prefill, parallel: {tp: 2, cp: 4}, engine: {kind: vllm}}\n"
      "    - {system: dgx_h100, role: decode, parallel: {tp: 8, ep: 8, dcp: 8}, engine: {kind: "
      "vllm}}\n";
  const RunRecord record = run_shared(apart);
  EXPECT_EQ(figure(record, "completed"), 3);
  // 27 layers of 512 + 64 columns in 2 B, once for the ranks of the receiver.
  EXPECT_NEAR(figure(record, "kv_transferred_bytes"), 3 * 16000.0 * 27 * 576 * 2, 1);
  const RunRecord copied = run_shared(apart, {"serving.fleet.1.parallel.dcp=1"});
  EXPECT_NEAR(figure(copied, "kv_transferred_bytes"), 8 * 3 * 16000.0 * 27 * 576 * 2, 1);
}

TEST(ContextParallelServing, OneRankIsAsEver) {
  const auto values = [](const std::vector<std::string>& set) {
    std::vector<double> all;
    for (const Metric& metric : run_shared(kLatent, set).metrics)
      if (metric.name != "wall_time_s") all.push_back(metric.value);
    return all;
  };
  EXPECT_EQ(values({}), values({"serving.fleet.0.parallel={tp: 8, ep: 8, cp: 1, dcp: 1}"}));
}

}  // namespace
}  // namespace orrery::context_parallel_test
