// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "sim/config/load.h"
#include "validation/checks/run_validation.h"

namespace orrery::serving_runs_test {
namespace {

using ::testing::HasSubstr;

/// A folder that is there as long as the object.
class Folder {
 public:
  Folder()
      : path_(std::filesystem::path(::testing::TempDir()) /
              ("serving_run_" + std::to_string(::getpid()))) {
    std::filesystem::create_directories(path_);
  }
  ~Folder() { std::filesystem::remove_all(path_); }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  void write(const std::string& name, const std::string& text) const {
    std::filesystem::create_directories((path_ / name).parent_path());
    std::ofstream(path_ / name) << text;
  }
  std::string path() const { return path_.string(); }

 private:
  std::filesystem::path path_;
};

constexpr const char* kMeta =
    R"({"model": "meta-llama/Llama-3.1-8B", "vllm_version": "0.19.0", "engine_kwargs":
        {"tensor_parallel_size": 1, "data_parallel_size": 1, "max_num_seqs": 8,
         "max_num_batched_tokens": 512}})";
constexpr const char* kCluster = R"({"nodes": [{"instances": [{"hardware": "H100"}]}]})";
constexpr const char* kRequests =
    R"({"input_toks": 100, "output_toks": 11, "queued_ts": 5.0, "first_token_ts": 5.02, "last_token_ts": 5.12}
{"input_toks": 50, "output_toks": 1, "queued_ts": 6.0, "first_token_ts": 6.01, "last_token_ts": 6.01}
)";

TEST(ServingRun, HasTimesOfEveryRequest) {
  const Folder folder;
  folder.write("meta.json", kMeta);
  folder.write("config.json", kCluster);
  folder.write("requests.jsonl", kRequests);
  const ServingRun run = read_serving_run(folder.path());
  EXPECT_EQ(run.max_num_seqs, 8);
  ASSERT_EQ(run.requests.size(), 2U);
  EXPECT_EQ(run.requests[1].request.arrival, 1'000'000'000'000U);
  const ServedTimes times = measured_times(run);
  ASSERT_EQ(times.tpot.size(), 1U);
  EXPECT_NEAR(times.tpot[0], 10, 1e-6);
  EXPECT_NEAR(times.ttft[1], 20, 1e-6);
  EXPECT_NEAR(times.e2el[1], 120, 1e-6);
}

TEST(ServingRun, WhatIsNoneIsSaid) {
  const Folder folder;
  folder.write("meta.json", "{}");
  folder.write("config.json", kCluster);
  try {
    read_serving_run(folder.path());
    FAIL();
  } catch (const config::ConfigError& error) {
    EXPECT_THAT(error.what(), HasSubstr("no run of a serving engine"));
  }
}

TEST(RunErrors, AreThoseOfMeansAndQuantiles) {
  const ServedTimes measured{{1, 2, 3}, {10, 10, 10}, {5, 5, 5}};
  const ServedTimes predicted{{2, 2, 5}, {9, 9, 9}, {5, 5, 10}};
  const RunErrors errors = run_errors(measured, predicted);
  EXPECT_NEAR(errors.ttft.mean, 0.5, 1e-12);
  EXPECT_NEAR(errors.ttft.p50, 0, 1e-12);
  EXPECT_NEAR(errors.tpot.p99, -0.1, 1e-12);
  // 0.9 of the way through two gaps: 5 + 0.8 x 5.
  EXPECT_NEAR(errors.e2el.p90, 9.0 / 5 - 1, 1e-12);
}

TEST(GridTable, IsStraightBetweenWhatWasMeasured) {
  GridTable table;
  for (const double a : {1.0, 3.0})
    for (const double b : {0.0, 10.0}) table.add({a, b, 0, 0}, a + 2 * b);
  EXPECT_NEAR(table.at({2, 5, 0, 0}), 12, 1e-12);
  EXPECT_NEAR(table.at({9, 5, 0, 0}), 13, 1e-12);  // outside: as at 3
  GridTable holed;
  holed.add({0, 0, 0, 0}, 4);
  holed.add({2, 2, 0, 0}, 8);
  EXPECT_NEAR(holed.at({1, 1, 0, 0}), 6, 1e-12);  // two of four corners
}

/// A profile of a rank of two layers whose times are easy to add up.
void write_profile(const Folder& folder) {
  folder.write("tp1/dense.csv",
               "layer,tokens,time_us\nembedding,1,1\nembedding,100,1\nlayernorm,1,2\nlayernorm,"
               "100,2\nqkv_proj,1,10\nqkv_proj,101,110\n");
  folder.write("tp1/per_sequence.csv", "layer,sequences,time_us\nlm_head,1,7\nlm_head,9,15\n");
  folder.write("tp1/attention.csv",
               "prefill_chunk,kv_prefill,n_decode,kv_decode,time_us\n0,0,1,16,1\n0,0,1,32,2\n0,0,"
               "2,16,2\n0,0,2,32,4\n16,0,0,0,5\n32,0,0,0,9\n");
}

double price_us(EngineTables& tables, const BatchShape& shape) {
  return to_seconds(tables.time(shape)).base() * 1e6;
}

TEST(EngineTables, AddUpTheLayersOfAStep) {
  const Folder folder;
  write_profile(folder);
  LlmConfig model;
  model.layers.resize(2);
  EngineTables tables(folder.path(), model, {});
  // Two decodes of 16 and 32 take what two of 24 do.
  EXPECT_NEAR(price_us(tables, {2, 32, 48, {}}), 1 + 2 * (2 * 2 + 11 + 3) + 8, 1e-6);
  // A chunk of 24 tokens that samples.
  const std::vector<Chunk> chunk = {{24, 0, true}};
  EXPECT_NEAR(price_us(tables, {0, 0, 0, chunk}), 1 + 2 * (2 * 2 + 33 + 7) + 7, 1e-6);
}

/// Attention of two layers of chunks of two grids, and of decodes beside the shortest chunk.
constexpr const char* kAttention =
    "prefill_chunk,kv_prefill,n_decode,kv_decode,time_us\n0,0,1,16,1\n0,0,1,32,2\n0,0,2,16,2\n"
    "0,0,2,32,4\n16,0,0,0,5\n24,0,0,0,6\n32,0,0,0,9\n16,0,1,16,1\n16,0,1,32,1.5\n";

TEST(EngineTables, TheLongestContextGoesOnAloneWhereNoneIsSplit) {
  const Folder folder;
  write_profile(folder);
  folder.write("tp1/attention.csv", kAttention);
  LlmConfig model;
  model.layers.resize(2);
  model.attention.kv_heads = 8;
  const double rest = 1 + 2 * (2 * 2 + 11) + 8;
  // 16 blocks are 0.8 of the 20 places of ten multiprocessors, and fewer of those of eleven.
  EngineTables unsplit(folder.path(), model, {1, 1, 10, {}});
  EXPECT_NEAR(price_us(unsplit, {2, 32, 48, {}}), rest + 2 * (3 + 0.25), 1e-6);
  EXPECT_NEAR(price_us(unsplit, {2, 24, 48, {}}), rest + 2 * 3, 1e-6);
  EngineTables split(folder.path(), model, {1, 1, 11, {}});
  EXPECT_NEAR(price_us(split, {2, 32, 48, {}}), rest + 2 * 3, 1e-6);
}

TEST(EngineTables, TakeTheFinerGridAsFarAsItReaches) {
  const Folder folder;
  write_profile(folder);
  folder.write("tp1/attention.csv", kAttention);
  LlmConfig model;
  model.layers.resize(2);
  EngineTables tables(folder.path(), model, {});
  const auto attention = [&](std::int64_t tokens) {
    const std::vector<Chunk> chunk = {{tokens, 0, true}};
    const double others = 1 + 2 * (2 * 2 + 9 + static_cast<double>(tokens)) + 7;
    return (price_us(tables, {0, 0, 0, chunk}) - others) / 2;
  };
  EXPECT_NEAR(attention(20), 6, 1e-6);  // of powers of two alone; lines between them
  EXPECT_NEAR(attention(24), 6, 1e-6);  // the finer grid; 7 by the other
  EXPECT_NEAR(attention(28), 7.5, 1e-6);
  EXPECT_NEAR(attention(32), 9, 1e-6);
}

TEST(ServingRun, CardsOfAHostHaveTheLinkThatTheRunDescribes) {
  ServingRun run;
  run.model = "m";
  run.hardware = "RTXPRO6000";
  run.version = "0.19.0";
  run.dp = 2;
  EXPECT_THAT(run_experiment(run, "m"), HasSubstr("latency: 5 us"));
  run.link_bandwidth = BytesPerSecond(16e9);
  run.link_latency = Seconds(20e-6);
  const std::string text = run_experiment(run, "m");
  EXPECT_THAT(text, HasSubstr("latency: 20 us"));
  EXPECT_THAT(text, HasSubstr("bandwidth: 16 GB/s"));
}

TEST(RunCase, TheHostIsFittedToOthers) {
  const Folder folder;
  folder.write("meta.json", kMeta);
  folder.write("config.json", kCluster);
  folder.write("requests.jsonl", kRequests);
  ServingRun run = read_serving_run(folder.path());
  run.version = "0.11.0";  // whose host does not hide behind the devices
  const RunCase one(run, "llama_3_1_8b", {});
  HostCosts host = fitted_host({&one});
  // 10 ms between tokens, less what a step takes.
  const double step = one.predicted(one.host()).tpot[0];
  EXPECT_NEAR(host.iteration.base() * 1e3, 10 - step, 0.05);
}

}  // namespace
}  // namespace orrery::serving_runs_test
