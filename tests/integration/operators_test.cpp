// SPDX-License-Identifier: Apache-2.0
// Every operator on every kind of device: a result, or a reason that names what is missing.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "tests/integration/program.h"

namespace operators_test {
namespace {

using namespace integration;
namespace fs = std::filesystem;

/// A small one of each kind.
const std::map<std::string, std::string>& operators() {
  static const std::map<std::string, std::string> all = {
      {"gemm", "m: 512, n: 512, k: 512"},
      {"grouped_gemm", "experts: 8, rows: 512, n: 256, k: 256"},
      {"attention_prefill", "query: 256, heads: 8, kv_heads: 2"},
      {"attention_decode", "kv_length: 256, heads: 8, kv_heads: 2"},
      {"mla_prefill", "query: 256, heads: 8"},
      {"mla_decode", "kv_length: 256, heads: 8"},
      {"sparse_attention", "query: 256, heads: 8, top_k: 64"},
      {"index_scores", "query: 256, heads: 8, top_k: 64"},
      {"delta_rule", "query: 256, heads: 8"},
      {"delta_update", "batch: 4, heads: 8"},
      {"mamba_scan", "query: 256, heads: 8"},
      {"mamba_update", "batch: 4, heads: 8"},
      {"causal_convolution", "query: 256, channels: 512"},
      {"moe", "tokens: 64, hidden: 256, expert_ffn: 128, top_k: 2, experts: 8"},
      {"mlp", "tokens: 64, hidden: 256, intermediate: 512"},
      {"rms_norm", "rows: 64, width: 256"},
      {"layer_norm", "rows: 64, width: 256"},
      {"rotary", "tokens: 64, heads: 8"},
      {"activation", "rows: 64, width: 256"},
      {"softmax", "rows: 64, width: 256"},
      {"cross_entropy", "tokens: 64, vocabulary: 1000"},
      {"quantize", "rows: 64, width: 256"},
      {"embedding", "tokens: 64, hidden: 256"},
      {"optimizer", "parameters: 1000000"},
      {"copy_host_to_device", "bytes: 1 MB"},
      {"copy_device_to_host", "bytes: 1 MB"},
      {"copy_device_to_device", "bytes: 1 MB"}};
  return all;
}

class Operators : public testing::TestWithParam<const char*> {
 protected:
  Outcome run(const std::string& kind, const std::string& keys, const std::string& precision) {
    const fs::path file =
        fs::temp_directory_path() / ("orrery_operator_" + std::to_string(::getpid()) + ".yaml");
    // A node without links, which any accelerator fits.
    std::ofstream(file) << "experiment: operator\nsystem: {extends: stm32f746, accelerator: "
                        << GetParam() << ", all_in_power: 10 kW}\noperator: {kind: " << kind << ", "
                        << keys << "}\nprecision: " << precision << "\n";
    Outcome outcome = orrery("run " + file.string() + " --json");
    fs::remove(file);
    return outcome;
  }
};

TEST_P(Operators, RunOrSayWhatIsMissing) {
  int ran = 0;
  for (const auto& [kind, keys] : operators()) {
    for (const char* precision : {"bf16", "int8"}) {
      if (kind == "quantize" && precision == std::string("bf16")) continue;
      const Outcome outcome = run(kind, keys, precision);
      if (outcome.code == 2) {
        EXPECT_THAT(outcome.out, testing::AnyOf(testing::HasSubstr("has no matrix rate for"),
                                                testing::HasSubstr("has no host_link")))
            << kind << " " << precision;
        continue;
      }
      ASSERT_EQ(outcome.code, 0) << kind << " " << precision << ": " << outcome.out;
      const auto metrics = nlohmann::json::parse(outcome.out).at("metrics");
      EXPECT_GT(metrics.at("time_s"), 0) << kind;
      EXPECT_GT(metrics.at("energy_j"), 0) << kind;
      ++ran;
    }
  }
  EXPECT_GE(ran, 20);
}

INSTANTIATE_TEST_SUITE_P(Devices, Operators,
                         testing::Values("h200_sxm", "ascend_910c", "tpu_v5p", "b200_sxm",
                                         "v100_sxm", "iphone_11", "stm32f746"),
                         [](const auto& param) { return std::string(param.param); });

TEST(OperatorTables, RowsThatBreakPhysicsAreLeftOutAndCounted) {
  const fs::path file =
      fs::temp_directory_path() / ("orrery_rows_" + std::to_string(::getpid()) + ".csv");
  // 2.15 GB of keys and values on an A100 of 2.04 TB/s: once in 0.8 ms, thirty times in 1.2 ms.
  std::ofstream table(file);
  table << "system,precision,kv_precision,batch,kv_len,heads,kv_heads,head_dim,window,latency_us\n"
        << "a100_sxm,bf16,bf16,64,8192,64,8,128,0,800\n";
  for (int i = 0; i < 30; ++i) table << "a100_sxm,bf16,bf16,64,8192,64,8,128,0,1200\n";
  table.close();
  const Outcome outcome = orrery("validate operators --json " + file.string(), false);
  fs::remove(file);
  ASSERT_EQ(outcome.code, 0);
  const auto json = nlohmann::json::parse(outcome.out);
  ASSERT_EQ(json.at("left_out_by_rule").size(), 1U);
  EXPECT_EQ(json.at("left_out_by_rule")[0].at("rows"), 1);
  EXPECT_EQ(json.at("left_out_by_rule")[0].at("rule"), "faster than the memory");
  EXPECT_EQ(json.at("entries")[0].at("count"), 30);
}

TEST(OperatorList, HasAllThatAreTestedHereAndNoOthers) {
  const Outcome outcome = orrery("describe operators --json");
  ASSERT_EQ(outcome.code, 0) << outcome.out;
  std::set<std::string> listed, tested;
  for (const auto& entry : nlohmann::json::parse(outcome.out)) listed.insert(entry.at("name"));
  for (const auto& [kind, keys] : operators()) tested.insert(kind);
  EXPECT_EQ(listed, tested);
}

}  // namespace
}  // namespace operators_test
