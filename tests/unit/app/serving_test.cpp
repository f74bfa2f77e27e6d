// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "sim/app/experiments/core/exit_codes.h"
#include "sim/app/experiments/core/simulate.h"
#include "sim/app/experiments/serving.h"
#include "sim/app/experiments/serving/metrics.h"
#include "sim/app/experiments/steps/inference.h"
#include "tests/unit/app/loaded_text.h"
#include "workloads/layers/layers.h"

namespace orrery::serving_test {
namespace {

using test::load;

using ::testing::HasSubstr;
using namespace literals;

constexpr const char* kOne =
    "experiment: serving\nmodel: llama_3_1_8b\nserving:\n"
    "  workload: {rate: 1 /s, requests: 1, input: 512, output: 4}\n"
    "  fleet: [{system: dgx_h100, engine: {kind: vllm, host: {}}}]\n";

double metric(const RunRecord& record, const char* name) { return record.find(name)->value; }

/// Blocks that hold states too are as large as those of a layer: vLLM says 528 tokens of Qwen3.5-4B
/// in bf16 (vllm-project/vllm issue 40696), 0.76 % more than its states need (pull request 37467).
TEST(Serving, BlocksOfVllmAreAsLargeAsTheStatesOfALayer) {
  const std::filesystem::path file = std::filesystem::temp_directory_path() /
                                     ("qwen3_5_4b_" + std::to_string(::getpid()) + ".json");
  std::ofstream(file) << R"({"model_type": "qwen3_5_text", "hidden_size": 2560,
      "vocab_size": 248320, "num_hidden_layers": 32, "full_attention_interval": 4,
      "num_attention_heads": 16, "num_key_value_heads": 4, "head_dim": 256,
      "linear_num_key_heads": 16, "linear_num_value_heads": 32, "linear_key_head_dim": 128,
      "linear_value_head_dim": 128, "linear_conv_kernel_dim": 4, "intermediate_size": 9216,
      "tie_word_embeddings": true})";
  const auto memory = [&](const std::string& engine) {
    const LoadedExperiment loaded =
        load("{experiment: serving, model: {hf: " + file.string() +
             "}, serving: {workload: {rate: 1 /s, "
             "requests: 1, input: 512, output: 4}, fleet: [{system: dgx_h100, engine: " +
             engine + "}]}}");
    const auto& serving = dynamic_cast<const ServingExperiment&>(*loaded.experiment);
    return serving.fleet().memory(serving.serving.fleet).front();
  };
  const ServingMemory vllm = memory("{kind: vllm}");
  EXPECT_EQ(vllm.block_tokens, 528);
  const double state = 32 * 128 * 128 * 4 + (2 * 16 * 128 + 32 * 128) * 3 * 2;  // of a layer
  EXPECT_DOUBLE_EQ(vllm.states.base(), 24 * state);
  EXPECT_NEAR(528.0 * 2 * 4 * 256 * 2 / state, 1.0076, 5e-5);
  EXPECT_DOUBLE_EQ(vllm.block.base(), 528.0 * 8 * 2 * 4 * 256 * 2);
  EXPECT_EQ(vllm.state_blocks, 3);  // three layers with states to one with keys
  EXPECT_EQ(vllm.set_aside.base(), 0);
  const ServingMemory sglang = memory("{kind: sglang, max_running_requests: 64}");
  EXPECT_EQ(sglang.state_tokens, 256);
  EXPECT_DOUBLE_EQ(sglang.set_aside.base(), 64 * 24 * state);  // set aside
  std::filesystem::remove(file);
}

TEST(Serving, ARequestAloneTakesItsSteps) {
  const RunRecord record = simulate(load(kOne));
  const auto step = [](const std::string& keys) {
    return metric(simulate(load("{experiment: inference, system: dgx_h100, model: llama_3_1_8b, "
                                "batch: {micro: 1, sequence: 512}, " +
                                keys + "}")),
                  "step_time_s") *
           1e3;
  };
  const double prefill = step("phase: prefill");
  double decodes = 0;
  for (const char* context : {"512", "513", "514"})
    decodes += step(std::string("phase: decode, kv_length: ") + context);
  EXPECT_NEAR(metric(record, "mean_ttft_ms") / prefill, 1, 0.005);
  EXPECT_NEAR(metric(record, "mean_tpot_ms") / (decodes / 3), 1, 0.005);
  EXPECT_NEAR(metric(record, "mean_e2el_ms"),
              metric(record, "mean_ttft_ms") + 3 * metric(record, "mean_tpot_ms"), 1e-9);
  EXPECT_EQ(metric(record, "iterations"), 4);
  EXPECT_NEAR(metric(record, "output_throughput_per_user") * metric(record, "mean_tpot_ms"), 1e3,
              1e-9);
}

/// The factors by which p10 and p90 of a metric lie beside it.
std::pair<double, double> spread(const RunRecord& record, const char* name) {
  const Metric& metric = *record.find(name);
  return {metric.interval.value().first / metric.value,
          metric.interval.value().second / metric.value};
}

/// The factor of a prefill on its own, and what lies between a client and the engine: squares of
/// logarithms add.
double with_client(double factor) {
  constexpr double kOfP90 = 1.2815515655446004, kClient = 0.165;
  const double wide = std::hypot(std::log(factor), kOfP90 * kClient);
  return std::exp(factor < 1 ? -wide : wide);
}

TEST(Serving, ARequestAloneIsAsUncertainAsItsStepsAndItsClient) {
  const RunRecord record = simulate(load(kOne));
  const auto step = [](const std::string& keys) {
    return spread(simulate(load("{experiment: inference, system: dgx_h100, model: llama_3_1_8b, "
                                "batch: {micro: 1, sequence: 512}, " +
                                keys + "}")),
                  "step_time_s");
  };
  const auto prefill = step("phase: prefill"), decode = step("phase: decode, kv_length: 513");
  EXPECT_LT(decode.first, 0.99);
  EXPECT_GT(decode.second, 1.01);
  const auto ttft = spread(record, "mean_ttft_ms"), tpot = spread(record, "mean_tpot_ms");
  EXPECT_NEAR(ttft.first, with_client(prefill.first), 0.005);
  EXPECT_NEAR(ttft.second, with_client(prefill.second), 0.005);
  EXPECT_NEAR(tpot.first, decode.first, 0.005);
  EXPECT_NEAR(tpot.second, decode.second, 0.005);
  EXPECT_FALSE(record.find("completed")->interval);
  EXPECT_GT(record.provenance.at("calibrated").get<double>(), 0.5);
}

// An H100's power is unsure by 0.15 where times are right: exp(1.28 x 0.15) = 1.21 to p90.
TEST(Serving, EnergyIsAtLeastAsUncertainAsPower) {
  const RunRecord record = simulate(load(kOne));
  for (const char* name : {"energy_j", "tokens_per_joule"}) {
    const auto [least, most] = spread(record, name);
    EXPECT_LT(least, 1 / 1.21) << name;
    EXPECT_GT(most, 1.21) << name;
    EXPECT_LT(most, 1.4) << name;
  }
  EXPECT_LT(spread(record, "average_power_w").first, 1 / 1.21);
  EXPECT_EQ(record.find("average_power_w")->interval->second, 700) << "the cap of an H100";
  EXPECT_LT(spread(record, "system_power_w").second, spread(record, "average_power_w").second);
}

TEST(Serving, WithoutACalibrationIntervalsAreWider) {
  const auto spread = [](const RunRecord& record) {
    const auto interval = record.find("mean_tpot_ms")->interval;
    return interval ? interval->second / interval->first : 1;
  };
  const RunRecord record = simulate(load(std::string(kOne) + "calibration: none\n"));
  EXPECT_GT(spread(record), 1.5 * spread(simulate(load(kOne))));
  EXPECT_EQ(record.provenance.at("analytic").get<double>(), 1);
}

TEST(Serving, WhatTheHostOfAnEngineTakesIsWhatWasFittedUnlessItIsGiven) {
  const auto ttft = [](const std::string& engine) {
    return metric(simulate(load("{experiment: serving, model: llama_3_1_8b, serving: {workload: "
                                "{rate: 1 /s, requests: 1, input: 512, output: 4}, fleet: "
                                "[{system: dgx_h100, engine: {" +
                                engine + "}}]}}")),
                  "mean_ttft_ms");
  };
  for (const std::string engine : {"kind: vllm", "kind: sglang", "kind: tensorrt_llm"}) {
    const double none = ttft(engine + ", host: {}"), fitted = ttft(engine);
    EXPECT_GT(fitted, none + 5) << engine;
    EXPECT_LT(fitted, none + 100) << engine;
    EXPECT_NEAR(ttft(engine + ", host: {request: 7 ms}"), none + 7, 1e-6) << engine;
  }
  EXPECT_NEAR(ttft("kind: orca"), ttft("kind: orca, host: {}"), 1e-9);
}

TEST(Serving, AVerificationTakesAStepOfSoManyTokens) {
  const std::string draft_tokens =
      "serving.fleet.0.speculative={method: ngram, num_speculative_tokens: 3, acceptance_length: "
      "4}";
  // The first token, and with one more iteration four.
  const RunRecord served = simulate(load(kOne, {draft_tokens, "serving.workload.output=5"}));
  EXPECT_EQ(metric(served, "iterations"), 2);
  const double step =
      metric(simulate(load("{experiment: inference, system: dgx_h100, model: llama_3_1_8b, phase: "
                           "mixed, mixed: {decodes: [{context: 512}], queries: 4}}")),
             "step_time_s");
  EXPECT_NEAR(metric(served, "mean_tpot_ms") * 4 / (step * 1e3), 1, 0.005);
}

TEST(Serving, AModelThatGuessesTakesItsPassesAndItsMemory) {
  const std::string draft_tokens =
      "serving.fleet.0.speculative={method: draft_model, model: llama_3_1_8b, "
      "num_speculative_tokens: 2, acceptance_length: 3}";
  const RunRecord served = simulate(load(kOne, {draft_tokens, "serving.workload.output=7"}));
  const RunRecord plain = simulate(load(kOne));
  // Of two equal models each pass takes what a step does: one of all new tokens, one of a token.
  const auto step = [](const char* queries) {
    return metric(simulate(load(std::string("{experiment: inference, system: dgx_h100, model: "
                                            "llama_3_1_8b, phase: mixed, mixed: {decodes: "
                                            "[{context: 514}], queries: ") +
                                queries + "}}")),
                  "step_time_s");
  };
  const double iteration = 2 * step("3") + step("1");
  EXPECT_EQ(metric(served, "iterations"), 3);
  EXPECT_NEAR(metric(served, "mean_tpot_ms") * 3 / (iteration * 1e3), 1, 0.005);
  // Twice the cache of a token, and the weights twice.
  const double block = 16.0 * 32 * 8 * 128 * 2 * 2, weights = 8030261248.0 * 2;
  EXPECT_NEAR(metric(served, "kv_blocks") * 2 * block, metric(plain, "kv_blocks") * block - weights,
              3 * block);
}

TEST(Serving, BlocksAreWhatMemoryLeaves) {
  const auto blocks = [](const std::vector<std::string>& set) {
    return metric(simulate(load(kOne, set)), "kv_blocks");
  };
  // 0.9 of 81,091 MiB, less 8,030,261,248 parameters of 2 B, 0.25 GiB of libraries, and what the
  // choice of 1,024 tokens takes: 38 B of each logit, and hidden states of 8,192 tokens and of
  // those chosen. Activations of 8,192 tokens take less: the attention's output and three states of
  // 4,096, gate, up and their product of 14,336, 2 B each. A block has 16 tokens of 32 layers x 8
  // heads x 128 x 2 (K and V) x 2 B.
  const double sampling = 1024.0 * 128256 * 38 + (8192.0 + 1024) * 4096 * 2;
  EXPECT_GT(sampling, 8192.0 * (4 * 4096 + 3 * 14336) * 2);
  const double left = 0.9 * 81091 * 1048576 - 8030261248.0 * 2 - 0.25 * 1024 * 1048576 - sampling;
  EXPECT_EQ(blocks({}), std::floor(left / (16.0 * 32 * 8 * 128 * 2 * 2)));
  EXPECT_EQ(blocks({"serving.fleet.0.engine.num_gpu_blocks=100"}), 100);
  EXPECT_NEAR(blocks({"serving.fleet.0.kv_precision=fp8"}) / blocks({}), 2, 1e-4);
  // Few sequences: activations.
  const double working = 8192.0 * (4 * 4096 + 3 * 14336) * 2 + 128256.0 * 2;
  EXPECT_EQ(blocks({"serving.fleet.0.engine.max_num_seqs=16"}),
            std::floor((left + sampling - working) / (16.0 * 32 * 8 * 128 * 2 * 2)));
}

TEST(Serving, WindowsTakeBlocksOfTheSequencesThatRun) {
  const std::string text =
      "{experiment: serving, model: gemma_3_1b, serving: {workload: {rate: 1 /s, requests: 1}, "
      "fleet: [{system: dgx_h100, engine: {kind: vllm, max_num_seqs: 100}}]}}";
  const LoadedExperiment loaded = load(text);
  const auto& e = loaded.as<ServingExperiment>();
  const ServingMemory memory = e.fleet().memory(e.serving.fleet).front();
  const LlmConfig llm = e.model.build();
  int windows = 0, full = 0;
  for (const LayerConfig& layer : llm.layers) ++(layer.window > 0 ? windows : full);
  ASSERT_GT(windows, 0);
  const double token =
      2.0 * double(llm.attention.kv_heads * llm.attention.head_dim) * 2;  // K, V of 2 B
  EXPECT_NEAR(memory.block.base(), 16 * full * token, 1e-6 * memory.block.base());
  EXPECT_NEAR(memory.window.base(), windows * 512 * token, 1e-3 * memory.window.base());
  EXPECT_EQ(memory.window_tokens, 512);
  EXPECT_EQ(memory.set_aside.base(), 0);
}

TEST(Serving, AModelThatDoesNotFitIsAResult) {
  const RunRecord record = simulate(load(kOne, {"model=llama_3_1_70b"}));
  EXPECT_EQ(record.status, RunStatus::kInfeasible);
  EXPECT_THAT(record.reason, HasSubstr("does not fit: a rank of 'group' needs 141 GB of weights"));
}

TEST(Serving, BlocksThatTheDeviceHasNoRoomForAreAResult) {
  const RunRecord record =
      simulate(load(kOne, {"serving.fleet.0.engine.num_gpu_blocks=1000000000000"}));
  EXPECT_EQ(record.status, RunStatus::kInfeasible);
  EXPECT_THAT(record.reason, HasSubstr("with its 1000000000000 blocks"));
}

TEST(Serving, ARequestThatFitsNoCacheIsAResult) {
  const RunRecord record = simulate(
      load(kOne, {"serving.workload.input=4000", "serving.fleet.0.engine.num_gpu_blocks=9"}));
  EXPECT_EQ(record.status, RunStatus::kInfeasible);
  EXPECT_THAT(record.reason,
              HasSubstr("request 0 of 4000 + 4 tokens does not fit in a cache of 144"));
}

TEST(Serving, TokensCostWhatTheFleetCostsMeanwhile) {
  // Eight requests of four tokens, too few for a steady window, on one of eight GPUs at 3.60 USD an
  // hour: 0.1 cent a second.
  const RunRecord record =
      simulate(load(kOne, {"serving.workload.requests=8", "serving.fleet.0.usd_per_hour=3.6",
                           "serving.fleet.0.unused=absent"}));
  EXPECT_NEAR(metric(record, "usd_per_million_output_tokens"),
              0.001 * metric(record, "duration_s") / 32 * 1e6, 1e-9);
  const RunRecord listed = simulate(load(kOne));
  EXPECT_DOUBLE_EQ(metric(listed, "usd_per_hour"), 8 * 1.69);  // the server is rented whole
  EXPECT_EQ(simulate(load(kOne, {"serving.prices=none"})).find("usd_per_hour"), nullptr);
}

TEST(Serving, UtilizationIsWhatAnswersNeedOfTheReplicasThatAreHeld) {
  const RunRecord one = simulate(load(kOne, {"serving.workload.output=1"}));
  const RunRecord step = simulate(
      load("{experiment: inference, system: dgx_h100, model: llama_3_1_8b, batch: {micro: 1, "
           "sequence: 512}, phase: prefill}"));
  const double mfu = metric(one, "model_flops_utilization");
  EXPECT_NEAR(mfu, metric(step, "model_flops_utilization"), 0.002 * mfu);
  const RunRecord two =
      simulate(load(kOne, {"serving.workload.output=1", "serving.fleet.0.replicas=2"}));
  EXPECT_NEAR(metric(two, "model_flops_utilization"), mfu / 2, 1e-9);
}

TEST(Serving, MemoryIsThatOfAllBlocks) {
  const RunRecord record = simulate(load(kOne));
  // All that vLLM may use of 81,091 MiB, but for less than a block of 2 MiB.
  const double used = metric(record, "peak_memory_bytes");
  EXPECT_LE(used, 0.9 * 81091 * 1048576);
  EXPECT_GT(used, 0.9 * 81091 * 1048576 - 2 * 1048576);
}

TEST(Serving, EnergyIsThatOfIterationsAndOfIdling) {
  const RunRecord record = simulate(load(kOne, {"serving.workload.output=2"}));
  const auto step = [](const char* keys) {
    return metric(simulate(load(std::string("{experiment: inference, system: dgx_h100, model: "
                                            "llama_3_1_8b, batch: {micro: 1, sequence: 512}, ") +
                                keys + "}")),
                  "energy_j");
  };
  // Nothing is before the request or after its tokens.
  const double steps = step("phase: prefill") + step("phase: decode, kv_length: 512");
  EXPECT_NEAR(metric(record, "energy_j") / steps, 1, 0.01);
  EXPECT_NEAR(metric(record, "average_power_w"),
              metric(record, "energy_j") / metric(record, "duration_s"), 1e-9);
}

TEST(Serving, SameSeedSameResult) {
  const std::vector<std::string> set = {"serving.workload.requests=40",
                                        "serving.workload.rate=30 /s",
                                        "serving.workload.output={uniform: [5, 50]}"};
  const auto result = [&] {
    RunRecord record = simulate(load(kOne, set));
    record.base = nullptr;
    return to_json(record).dump();
  };
  EXPECT_EQ(result(), result());
}

TEST(Serving, TwiceTheReplicasHoldTwiceTheRate) {
  const auto p99 = [](const char* rate, const char* replicas) {
    return metric(
        simulate(load(
            kOne, {"serving.workload.requests=400", std::string("serving.workload.rate=") + rate,
                   std::string("serving.fleet.0.replicas=") + replicas,
                   "serving.router=round_robin", "serving.workload.output=64"})),
        "p99_tpot_ms");
  };
  const double one = p99("20 /s", "1");
  EXPECT_NEAR(p99("40 /s", "2") / one, 1, 0.15);
  EXPECT_LT(p99("20 /s", "2"), one);
}

TEST(Serving, GoodputCountsThoseWhoKeepTheirBounds) {
  const RunRecord all = simulate(load(kOne, {"serving.slo={ttft_p99: 1 s}"}));
  EXPECT_EQ(metric(all, "slo_attainment"), 1);
  EXPECT_DOUBLE_EQ(metric(all, "request_goodput"), metric(all, "request_throughput"));
  const RunRecord none = simulate(load(kOne, {"serving.slo={tpot: 1 us}"}));
  EXPECT_EQ(metric(none, "slo_attainment"), 0);
  EXPECT_EQ(metric(none, "request_goodput"), 0);
}

TEST(Serving, AWatchEndsARunThatKeepsWhatWasAnswered) {
  const LoadedExperiment loaded =
      load(kOne, {"serving.workload.requests=5000", "serving.workload.rate=50 /s",
                  "serving.workload.output=2"});
  SimulateOptions options;
  std::size_t expected = 0;
  options.watch = [&](std::size_t done, std::size_t all) {
    expected = all;
    return done < 1000;
  };
  const RunRecord record = simulate(loaded, options);
  EXPECT_TRUE(was_stopped(record));
  EXPECT_EQ(expected, 5000U);
  EXPECT_GE(metric(record, "completed"), 1000);
  EXPECT_LT(metric(record, "completed"), 5000);
  EXPECT_FALSE(was_stopped(simulate(load(kOne))));
}

TEST(Serving, ATimelineHasIterationsAndTransfers) {
  const std::string file =
      ::testing::TempDir() + "serving_" + std::to_string(::getpid()) + ".pftrace";
  SimulateOptions options;
  options.trace = file;
  simulate(load("{experiment: serving, model: llama_3_1_8b, serving: {workload: {rate: 9 /s, "
                "requests: 3, input: 300, output: 4}, fleet: [{name: p, system: dgx_h100, role: "
                "prefill, engine: {kind: vllm}}, {name: d, system: dgx_h100, role: decode, engine: "
                "{kind: vllm}}]}}"),
           options);
  std::ifstream stream(file, std::ios::binary);
  const std::string text{std::istreambuf_iterator<char>(stream), {}};
  std::filesystem::remove(file);
  for (const char* name : {"p 0 (prefill)", "d 0 (decode)", "prompts 300", "decodes 1",
                           "KV transfers", "request 2", "KV cache used"})
    EXPECT_THAT(text, HasSubstr(name));
}

TEST(Serving, RowsOfRequestsAreKeptWhereAskedFor) {
  EXPECT_TRUE(simulate(load(kOne)).rows.empty());
  const RunRecord record =
      simulate(load(kOne, {"serving.record=requests", "serving.workload.requests=5"}));
  ASSERT_EQ(record.rows.size(), 2U);
  const std::size_t width = row_table("requests").width;
  const std::vector<double>& values = record.rows[0].values;
  ASSERT_EQ(values.size(), 5 * width);
  double ttft = 0;
  for (std::size_t i = 0; i < 5; ++i) ttft += values[i * width + 8] - values[i * width + 6];
  EXPECT_NEAR(ttft / 5 * 1e3, metric(record, "mean_ttft_ms"), 1e-9);
  EXPECT_TRUE(std::isnan(values[9]));  // nothing came from elsewhere
  EXPECT_FALSE(record.rows[1].values.empty());
}

/// What a step list does of a class of kernels, and its collectives.
struct Sums {
  double flops = 0;
  std::vector<TransferKind> collectives;

  Sums(const StepList& steps, const char* what) {
    for (const Step& step : steps.steps()) {
      if (step.collective() != nullptr) collectives.push_back(step.collective()->kind);
      if (step.kernel() != nullptr && step.kernel()->name.rfind(what, 0) == 0)
        flops += step.kernel()->matrix_flops.base();
    }
  }
};

TEST(Experts, OfTensorParallelRanksMeetInAnAllReduce) {
  const LoadedExperiment loaded = load(
      "{experiment: inference, system: dgx_h100, model: deepseek_r1, phase: decode, kv_length: "
      "512, parallel: {tp: 8, ep: 8}, batch: {micro: 64}}");
  const LlmConfig llm = loaded.as<ModelExperiment>().model.build();
  InferenceConfig config;
  config.parallel.tp = 8;
  config.parallel.ep = 8;
  config.micro_batch = 64;
  config.kv_length = 512;
  const auto feed = [&](bool all_reduce, const char* what) {
    config.parallel.sp = !all_reduce;
    return Sums(feed_half_forward(llm, llm.layers.back(), rank_work(config)), what);
  };
  const Sums summed = feed(true, "expert ");
  EXPECT_THAT(summed.collectives, testing::ElementsAre(TransferKind::kAllReduce));
  // 64 tokens x 8 copies over 8 ranks: 64 rows, the same products as with tokens sent around.
  EXPECT_DOUBLE_EQ(summed.flops, 64.0 * 3 * 2 * 7168 * 2048);
  EXPECT_DOUBLE_EQ(feed(false, "expert ").flops, summed.flops);
  // The shared expert is split over the ranks, or whole for an eighth of the tokens.
  EXPECT_DOUBLE_EQ(feed(true, "shared expert").flops, 64.0 * 3 * 2 * 7168 * 2048 / 8);
  EXPECT_DOUBLE_EQ(feed(false, "shared expert").flops, feed(true, "shared expert").flops);
}

}  // namespace
}  // namespace orrery::serving_test
