// SPDX-License-Identifier: Apache-2.0
// Memory of engines beside what they printed as they started.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "sim/app/experiments/core/simulate.h"
#include "sim/app/experiments/serving.h"
#include "sim/app/questions/explain/explain.h"
#include "tests/unit/app/loaded_text.h"

namespace orrery::engine_memory_test {
namespace {

using test::load;
using testing::HasSubstr;

RunRecord run(const std::string& model, const std::string& group, const std::string& engine) {
  return simulate(
      load("{experiment: serving, model: " + model +
           ", serving: {workload: {concurrency: 1, requests: 1, input: 100, output: 2}, fleet: [{" +
           group + ", engine: {" + engine + "}}]}}"));
}

double of(const RunRecord& record, const char* name) {
  const Metric* found = record.find(name);
  return found == nullptr ? -1 : found->value;
}

/// A start, and "GPU KV cache size" as it was printed.
struct Start {
  const char* name;
  const char* model;
  const char* group;
  const char* engine;
  double tokens;
  double within;
};

void PrintTo(const Start& start, std::ostream* out) { *out << start.name; }

class Starts : public testing::TestWithParam<Start> {};

TEST_P(Starts, HoldTheTokensThatTheyPrinted) {
  const Start& start = GetParam();
  EXPECT_NEAR(of(run(start.model, start.group, start.engine), "kv_tokens") / start.tokens, 1,
              start.within);
}

// jgchn/llm-d-planner, accuracy/results/v0.19.0 (2026), on H100: overheads of vLLM 0.17 and later
// are from these starts. vLLM issue 21348 (2025) had SGLang on the same cards.
constexpr const char* kVllm =
    "kind: vllm, version: '0.19', gpu_memory_utilization: 0.95, "
    "max_num_seqs: 1024, max_num_batched_tokens: 8192";
INSTANTIATE_TEST_SUITE_P(
    Of, Starts,
    testing::Values(
        Start{"OneRank", "llama_3_1_8b", "system: dgx_h100", kVllm, 476000, 0.005},
        Start{"EightBitCache", "llama_3_1_8b", "system: dgx_h100, kv_precision: fp8", kVllm, 952032,
              0.005},
        Start{"ThirtyTwoBits", "llama_3_1_8b", "system: dgx_h100, precision: fp32", kVllm, 175296,
              0.01},
        Start{"TwoTensorRanks", "llama_3_1_8b", "system: dgx_h100, parallel: {tp: 2}", kVllm,
              1044688, 0.005},
        Start{"FourTensorRanks", "llama_3_1_8b", "system: dgx_h100, parallel: {tp: 4}", kVllm,
              2209792, 0.005},
        Start{"TwoStages", "llama_3_1_8b", "system: dgx_h100, parallel: {pp: 2}", kVllm, 1075312,
              0.005},
        Start{"FourStages", "llama_3_1_8b", "system: dgx_h100, parallel: {pp: 4}", kVllm, 2257264,
              0.005},
        Start{"Llama70B", "llama_3_1_70b", "system: dgx_h100, precision: fp8, parallel: {tp: 4}",
              kVllm, 708992, 0.01},
        Start{"Sglang", "qwen3_235b_a22b", "system: dgx_h100, precision: fp8, parallel: {tp: 4}",
              "kind: sglang, mem_fraction_static: 0.93", 367404, 0.05},
        // The same issue: 6 % too many. Of a version of mid-2025, which it does not name.
        Start{"ExpertsOfVllm", "qwen3_235b_a22b",
              "system: dgx_h100, precision: fp8, parallel: {tp: 4}", "kind: vllm", 178880, 0.06},
        // LLMServingSim, bench/examples/RTX4090 (2026): 9 % too many, 0.4 GiB that no
        // term explains.
        Start{"GraphicsCard", "llama_3_1_8b", "system: rtx_4090_4",
              "kind: vllm, version: '0.19', max_num_seqs: 256, max_num_batched_tokens: "
              "2048",
              41408, 0.09}),
    [](const auto& start) { return start.param.name; });

TEST(EngineMemory, GraphsAreInTheShareFromVllm021On) {
  const auto tokens = [](const char* version, const char* more) {
    return of(run("llama_3_1_8b", "system: dgx_h100",
                  std::string("kind: vllm, gpu_memory_utilization: 0.9, version: '") + version +
                      "'" + more),
              "kv_tokens");
  };
  // 0.28 GiB, and 387 KiB for each of 32 layers and 51 sizes.
  const double graphs = 0.28 * 1073741824 + 387.0 * 1024 * 32 * 51;
  EXPECT_NEAR(tokens("0.20", "") - tokens("0.21", ""), graphs / 131072, 17);
  EXPECT_EQ(tokens("0.21", ", enforce_eager: true"), tokens("0.20", ""));
}

TEST(EngineMemory, RequestsOfTheLongestLengthAreCounted) {
  const char* long_ones = "kind: vllm, num_gpu_blocks: 4096, max_model_len: 8192";
  EXPECT_DOUBLE_EQ(of(run("llama_3_1_8b", "system: dgx_h100", long_ones), "kv_requests"), 8);
  const RunRecord longer = run("llama_3_1_8b", "system: dgx_h100",
                               "kind: vllm, num_gpu_blocks: 4096, max_model_len: 70000");
  EXPECT_EQ(longer.status, RunStatus::kInfeasible);
  EXPECT_THAT(longer.reason, HasSubstr("holds 65536 tokens, and max_model_len is 70000"));
}

// A start of Gemma 4 26B on a Jetson Thor printed 51.62 GiB and 33.42 requests of 131,072 tokens
// (KV cache budget of 2026-04): five layers in eight bits keep them all, 25 a window of 1,024 and
// the 2,048 tokens of an iteration.
TEST(EngineMemory, WindowsHaveRoomForAnIteration) {
  const char* engine =
      "kind: vllm, version: '0.19', max_model_len: 131072, "
      "max_num_batched_tokens: 2048, num_gpu_blocks: ";
  const double block = 16 * 10240.0;  // bytes
  const auto blocks = static_cast<long>(51.62 * 1073741824 / block);
  EXPECT_NEAR(of(run("gemma_4_26b_a4b", "system: jetson_thor, kv_precision: fp8",
                     engine + std::to_string(blocks)),
                 "kv_requests"),
              33.42, 0.1);
}

// jgchn/llm-d-planner, accuracy/results/v0.19.0: RedHatAI/Llama-3.3-70B-Instruct-fp8-dynamic on two
// H100.
TEST(EngineMemory, ExplainHasTheLinesOfTheLogOfAStart) {
  const LoadedExperiment loaded = load(
      "{experiment: serving, model: llama_3_1_70b, serving: {workload: {concurrency: 1, requests: "
      "1, input: 100, output: 2}, fleet: [{system: dgx_h100, parallel: {tp: 2}, precision: fp8, "
      "engine: {" +
      std::string(kVllm) + "}}]}}");
  const nlohmann::ordered_json explanation = explain(loaded);
  const auto& rank = explanation.at("groups").front();
  const auto gib = [&](const char* key) { return rank.at(key).get<double>() / 1073741824; };
  EXPECT_NEAR(gib("usable_bytes"), 0.95 * 79.19, 0.03);
  EXPECT_NEAR(gib("weights_bytes"), 33.88, 0.1);
  EXPECT_NEAR(gib("working_bytes"), 1.96, 0.1);
  EXPECT_NEAR(gib("libraries_bytes") + gib("communicators_bytes"), 2.1, 0.1);
  EXPECT_NEAR(gib("graphs_bytes"), 1.79, 0.2);
  EXPECT_NEAR(gib("cache_bytes"), 37.28, 0.2);
}

// sgl-project/sglang issue 3344 (2025): it does not run out of memory.
TEST(EngineMemory, DeepSeekR1OnSixteenH100HoldsAPromptOf128Ki) {
  const RunRecord record = run("deepseek_r1",
                               "system: dgx_h100, nodes: 2, parallel: {tp: 16, etp: 16}, "
                               "precision: fp8",
                               "kind: sglang");
  EXPECT_EQ(record.status, RunStatus::kOk);
  EXPECT_GT(of(record, "kv_tokens"), 131072);
}

TEST(EngineMemory, MixtralIsSharedByTensorRanks) {
  const RunRecord record = run("mixtral_8x7b", "system: dgx_h100, parallel: {tp: 2}", "kind: vllm");
  EXPECT_EQ(record.status, RunStatus::kOk);
  EXPECT_EQ(of(record, "kv_tokens"),
            of(run("mixtral_8x7b", "system: dgx_h100, parallel: {tp: 2, etp: 2}", "kind: vllm"),
               "kv_tokens"));
}

}  // namespace
}  // namespace orrery::engine_memory_test
