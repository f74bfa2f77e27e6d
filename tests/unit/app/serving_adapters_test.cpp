// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "sim/app/experiments/core/simulate.h"
#include "sim/app/experiments/serving.h"
#include "sim/app/experiments/serving/adapters.h"
#include "sim/app/experiments/steps/plan_check.h"
#include "tests/unit/app/loaded_text.h"

namespace orrery::serving_adapters_test {
namespace {

using test::load;

double metric_of(const RunRecord& record, const char* name) { return record.find(name)->value; }

constexpr const char* kAdapted =
    "experiment: serving\nmodel: llama_3_1_8b\nserving:\n"
    "  workload: {rate: 1 /s, requests: 1, input: 512, output: 4, adapters: 1}\n"
    "  fleet: [{system: dgx_h100, engine: {kind: vllm, host: {}}, lora: {max_loras: 4}}]\n";

/// Elements of an adapter of rank 1 of Llama-3.1-8B: in and out of q, k, v, o, gate, up and down.
constexpr double kColumns = 32.0 * ((4096 + 4096) + 2 * (4096 + 1024) + (4096 + 4096) +
                                    2 * (4096 + 14336) + (14336 + 4096));

TEST(ServingAdapters, AnIterationIsAStepWithItsAdapters) {
  const RunRecord record = simulate(load(kAdapted));
  const auto step = [](const char* context) {
    return metric_of(simulate(load(std::string("{experiment: inference, system: dgx_h100, model: "
                                               "llama_3_1_8b, batch: {micro: 1}, phase: decode, "
                                               "lora: {max_loras: 4}, adapters: 1, kv_length: ") +
                                   context + "}")),
                     "step_time_s") *
           1e3;
  };
  const double decodes = step("512") + step("513") + step("514");
  EXPECT_NEAR(metric_of(record, "mean_tpot_ms") / (decodes / 3), 1, 0.005);
  EXPECT_EQ(metric_of(record, "adapter_loads"), 1);
}

TEST(ServingAdapters, SlotsThatNoRequestAsksForAreAWarning) {
  EXPECT_EQ(check_plan(load(kAdapted)), "");
  EXPECT_NE(check_plan(load(kAdapted, {"serving.workload.adapters=null"}))
                .find("slots for adapters, which no request asks for"),
            std::string::npos);
}

TEST(ServingAdapters, TheFirstTokenWaitsForTheAdapter) {
  const auto ttft = [](const std::vector<std::string>& set) {
    return metric_of(simulate(load(kAdapted, set)), "mean_ttft_ms");
  };
  // 16 ranks of 2 B over PCIe 5 x16 at 64 GB/s, and 10 us; twice the bytes over half the link.
  const double bytes = 16 * kColumns * 2, ms = bytes / 64e9 * 1e3;
  const LoadedExperiment loaded = load(kAdapted);
  const auto& e = loaded.as<ServingExperiment>();
  const AdapterRules rules = adapter_rules(e.model.build(), e.serving.fleet.front());
  const double link = e.serving.fleet.front().system.accelerator.host_link.bandwidth.value.base();
  EXPECT_NEAR(rules.load.base(), bytes / link + 10e-6, 1e-12);
  EXPECT_EQ(rules.slots, 4);
  const std::string key = "serving.fleet.0.system.accelerator.host_link.bandwidth=";
  EXPECT_NEAR(ttft({key + "32 GB/s"}) - ttft({key + "64 GB/s"}), ms, 1e-6 * ms);
}

TEST(ServingAdapters, SlotsTakeBlocksFromTheCache) {
  const auto blocks = [](const std::vector<std::string>& set) {
    return metric_of(simulate(load(kAdapted, set)), "kv_blocks");
  };
  // A block has 16 tokens of 32 layers x 8 heads x 128 x 2 (K and V) x 2 B.
  const double block = 16.0 * 32 * 8 * 128 * 2 * 2, slot = 16 * kColumns * 2;
  EXPECT_NEAR(blocks({}) - blocks({"serving.fleet.0.lora.max_loras=24"}), 20 * slot / block, 1);
  // Half of B of columns and of A of rows on each of two ranks, and half of the cache.
  const double shared =
      32.0 * 16 * 2 * ((3 * 4096 + 3072) + (2048 + 4096) + (2 * 4096 + 14336) + (7168 + 4096));
  EXPECT_NEAR(blocks({"serving.fleet.0.parallel.tp=2"}) -
                  blocks({"serving.fleet.0.parallel.tp=2", "serving.fleet.0.lora.max_loras=24"}),
              20 * shared / (block / 2), 1);
}

TEST(ServingAdapters, SlotsAloneLeaveTimesAsTheyAre) {
  const std::vector<std::string> none = {"serving.workload.adapters=null"};
  const std::vector<std::string> neither = {"serving.workload.adapters=null",
                                            "serving.fleet.0.lora=null"};
  for (const char* name : {"mean_ttft_ms", "mean_tpot_ms", "iterations"})
    EXPECT_EQ(metric_of(simulate(load(kAdapted, none)), name),
              metric_of(simulate(load(kAdapted, neither)), name));
}

}  // namespace
}  // namespace orrery::serving_adapters_test
