// SPDX-License-Identifier: Apache-2.0
// Caches that go to other instances or to other memory: what of them goes, how fast, and what
// connectors of vLLM cost.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "sim/app/experiments/core/simulate.h"
#include "sim/app/experiments/serving.h"
#include "sim/app/experiments/serving/transfer.h"
#include "tests/unit/app/loaded_text.h"

namespace orrery::kv_transfer_test {
namespace {

using test::load;

/// A group of one rank, or of eight, whose caches may go elsewhere.
std::string served(const std::string& model, const std::string& group,
                   const std::string& more = "") {
  return "{experiment: serving, model: " + model +
         ", serving: {workload: {rate: 1 /s, requests: 1, input: 4096, output: 4}, fleet: [{" +
         group + "}]" + more + "}}";
}

ServingMemory memory_of(const std::string& text) {
  const LoadedExperiment loaded = load(text);
  const auto& e = loaded.as<ServingExperiment>();
  return e.fleet().memory(e.serving.fleet).front();
}

std::string gpt_oss(const std::string& version, const std::string& more) {
  return served("gpt_oss_120b",
                "system: dgx_h200, engine: {kind: vllm, version: \"" + version + "\"}" + more);
}
constexpr const char* kPooled = ", kv_tiers: [{kind: pooled, capacity: 200 GB}]";

// vllm issue 42024: a connector halves what the cache of gpt-oss-120b holds, of whose 36 layers 18
// have a window.
TEST(Connectors, KeepWholeSequencesInLayersWithAWindowBefore021) {
  const ServingMemory alone = memory_of(gpt_oss("0.19", ""));
  const ServingMemory connected = memory_of(gpt_oss("0.19", kPooled));
  EXPECT_EQ(connected.window_tokens, 0);
  EXPECT_DOUBLE_EQ(connected.block.base(), 2 * alone.block.base());
  // Alone a window and the 8,192 tokens of an iteration count (v1/kv_cache_interface.py).
  EXPECT_NEAR(connected.requests(32768) / alone.requests(32768), (1 + 8320 / 32768.0) / 2, 0.01);
  EXPECT_EQ(memory_of(gpt_oss("0.21", kPooled)).block, memory_of(gpt_oss("0.21", "")).block);
}

TEST(Connectors, BeforeTheHybridManagerEverySequenceIsWhole) {
  EXPECT_EQ(memory_of(gpt_oss("0.8", "")).window_tokens, 0);
  EXPECT_EQ(memory_of(gpt_oss("0.11", "")).window_tokens, 128);
}

TEST(Connectors, ChangeNothingWhereNoLayerHasAWindow) {
  const std::string group = "system: dgx_h200, engine: {kind: vllm, version: \"0.19\"}";
  const ServingMemory alone = memory_of(served("llama_3_1_8b", group));
  const ServingMemory connected = memory_of(served("llama_3_1_8b", group + kPooled));
  EXPECT_EQ(alone.block, connected.block);
  EXPECT_EQ(alone.blocks, connected.blocks);
}

/// Time of a token from pooled memory into a replica.
double pooled_us(const std::string& text) {
  const LoadedExperiment loaded = load(text);
  const auto& e = loaded.as<ServingExperiment>();
  return kv_tiers(e.serving.fleet.front(), e.fleet().memory(e.serving.fleet).front())
             .front()
             .token.base() *
         1e6;
}

// llm-d.github.io blog/2026-08-15 (H200, NIXL over RDMA, from host memory to host memory):
// 35 ms of 2,048 tokens to 235 ms of 49,152.
TEST(PooledCaches, TakeTheTimeOfBothLinksOneAfterTheOther) {
  const double us = pooled_us(gpt_oss("0.19", kPooled));
  // 73.7 kB over a NIC of 400 Gb/s, then over 16 lanes of PCIe 5.
  EXPECT_GT(us, 73.7e3 / 50e9 * 1e6 + 73.7e3 / 63e9 * 1e6);
  const double measured = (235 - 35) / (49152 - 2048.0) * 1e3;
  EXPECT_NEAR(us / measured, 1, 0.35);  // 30 % faster than it was measured
}

KvPort port_of(const std::string& text) {
  const LoadedExperiment loaded = load(text);
  const auto& e = loaded.as<ServingExperiment>();
  return kv_ports(e.model.build(), e.serving, e.fleet().memory(e.serving.fleet)).front();
}

// Mooncake docs/source/performance: 4.50 GB of Qwen3-8B in 31.65 ms between two nodes of eight
// H800 by vLLM, 12.62 GB of Qwen3-235B in 76.78 ms between two of H20, whose NICs carry 200 GB/s,
// by SGLang.
TEST(KvTransfers, StartLateAndThenTakeTheNicsOfAllRanks) {
  const std::string group =
      "system: hgx_h20_141, role: prefill, parallel: {tp: 8}, engine: {kind: sglang}}, {system: "
      "hgx_h20_141, role: decode, parallel: {tp: 8}, engine: {kind: sglang}";
  const KvPort port = port_of(served("qwen3_235b_a22b", group));
  EXPECT_NEAR(port.latency.base(), 1e-3, 0.05e-3);
  const KvPort late = port_of(served("qwen3_235b_a22b", group, ", kv_transfer: {start: 1.6 ms}"));
  EXPECT_NEAR(late.latency.base() - port.latency.base(), 0.6e-3, 1e-9);
  // 94 layers of 4 heads of 128, keys and values in 2 B: 12.62 GB of 32,768 tokens twice over,
  // because eight ranks hold four heads.
  EXPECT_NEAR(port.size.token.base() * 32768 / 2, 6.31e9, 0.01e9);
}

TEST(KvTransfers, ALaterStartIsALaterSecondToken) {
  const std::string group =
      "system: dgx_h100, role: prefill, engine: {kind: vllm}}, {system: dgx_h100, role: decode, "
      "engine: {kind: vllm}";
  const auto tpot = [&](const char* start) {
    return simulate(load(served("llama_3_1_8b", group,
                                std::string(", kv_transfer: {start: ") + start + "}")))
        .find("mean_tpot_ms")
        ->value;
  };
  // Three tokens follow the first one.
  EXPECT_NEAR((tpot("31 ms") - tpot("1 ms")) * 3, 30, 1);
}

}  // namespace
}  // namespace orrery::kv_transfer_test
