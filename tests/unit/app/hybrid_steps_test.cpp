// SPDX-License-Identifier: Apache-2.0
// Steps of a hybrid of Mamba-2 and attention: priced with and without a graph, on all kinds of
// devices, and what it holds of a sequence.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "sim/app/experiments/core/simulate.h"
#include "sim/app/experiments/serving.h"
#include "sim/app/experiments/serving/metrics.h"
#include "tests/unit/app/loaded_text.h"

namespace orrery::hybrid_steps_test {
namespace {

using test::load;

double metric(const RunRecord& record, const char* name) { return record.find(name)->value; }

double step_s(const std::string& keys) {
  return metric(simulate(load("{experiment: inference, model: nemotron_3_nano, precision: bf16, " +
                              keys + "}")),
                "step_time_s");
}

// Nemotron 3 Nano has 23 layers of Mamba with 64 heads of 64 and states of 128: 2.1 MB of fp32 a
// sequence and layer, with three inputs of 6,144 channels in 16 bits; six of attention with 2 KV
// heads of 128.
constexpr double kState = 23 * (64.0 * 64 * 128 * 4 + 6144 * 3 * 2);
constexpr double kToken = 6 * 2 * 2 * 128 * 2;

TEST(HybridSteps, HoldStatesAndAFewLayersTokens) {
  const RunRecord record = simulate(
      load("{experiment: inference, phase: decode, kv_length: 999, system: dgx_h200, model: "
           "nemotron_3_nano, batch: {micro: 8}}"));
  EXPECT_DOUBLE_EQ(metric(record, "memory.kv_cache_bytes"), 8 * (kState + 1000 * kToken));
}

TEST(HybridSteps, RunOnEveryKindOfDevice) {
  for (const char* system : {"dgx_h100", "dgx_b200", "gb200_nvl72", "mi355x_platform", "cm384"}) {
    const std::string on = std::string("system: ") + system + ", parallel: {tp: 2, ep: 2}, ";
    const double near = step_s(on + "phase: decode, kv_length: 4096, batch: {micro: 64}");
    const double far = step_s(on + "phase: decode, kv_length: 65536, batch: {micro: 64}");
    // 64 sequences read 61,440 x 3,072 bytes of keys and values more on each of two ranks.
    EXPECT_GT(far, near) << system;
    // Twice the prompts take at least 1.5 times as long: nothing of them is free.
    const double one = step_s(on + "phase: prefill, batch: {micro: 1, sequence: 8192}");
    const double two = step_s(on + "phase: prefill, batch: {micro: 2, sequence: 8192}");
    EXPECT_GT(two, 1.5 * one) << system;
    EXPECT_LT(two, 2.05 * one) << system;
  }
}

TEST(HybridSteps, AStateIsInBlocksAsLargeAsThatOfALayer) {
  const LoadedExperiment loaded = load(
      "{experiment: serving, model: nemotron_3_nano, serving: {workload: {rate: 1 /s, "
      "requests: 1}, fleet: [{system: dgx_h200, engine: {kind: vllm, max_num_seqs: 100}}]}}");
  const auto& e = loaded.as<ServingExperiment>();
  const ServingMemory memory = e.fleet().memory(e.serving.fleet).front();
  // 6 layers of attention with 1,024 bytes a token, 23 of Mamba: the first 16 tokens that hold a
  // state of one.
  const double steps = std::ceil(kState / 23 / (16 * kToken / 6));
  EXPECT_NEAR(memory.block.base(), steps * 16 * kToken, 1);
  EXPECT_EQ(memory.state_blocks, std::ceil(kState / memory.block.base()));
  EXPECT_EQ(memory.set_aside.base(), 0);
}

TEST(HybridSteps, ARequestAloneTakesItsSteps) {
  const RunRecord record =
      simulate(load("experiment: serving\nmodel: nemotron_3_nano\nserving:\n"
                    "  workload: {rate: 1 /s, requests: 1, input: 512, output: 4}\n"
                    "  fleet: [{system: dgx_h200, engine: {kind: vllm, host: {}}}]\n"));
  const std::string on = "system: dgx_h200, batch: {micro: 1, sequence: 512}, ";
  EXPECT_NEAR(metric(record, "mean_ttft_ms") / 1e3 / step_s(on + "phase: prefill"), 1, 0.005);
  EXPECT_NEAR(metric(record, "mean_tpot_ms") / 1e3 / step_s(on + "phase: decode, kv_length: 513"),
              1, 0.005);
}

}  // namespace
}  // namespace orrery::hybrid_steps_test
