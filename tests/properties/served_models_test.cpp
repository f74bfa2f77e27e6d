// SPDX-License-Identifier: Apache-2.0
// Serving of every model that ships, and what engines reserve for those of odd shapes.
#include <gtest/gtest.h>

#include <string>

#include "sim/app/experiments/core/simulate.h"
#include "sim/app/experiments/serving.h"
#include "sim/app/experiments/serving/fleet.h"
#include "sim/config/diagnostics.h"
#include "sim/config/library.h"
#include "tests/unit/app/loaded_text.h"

namespace orrery::served_models_test {
namespace {

using test::load;

std::string served(const std::string& model, const std::string& engine) {
  return "{experiment: serving, model: " + model +
         ", serving: {workload: {rate: 1 /s, requests: 2, input: 300, output: 3}, fleet: [{system: "
         "{extends: dgx_h100, accelerator: {extends: h100_sxm, memory: {capacity: 9 TB}}}, "
         "engine: " +
         engine + "}]}}";
}

// Counter-examples once: RWKV ended by a signal, as it asked a step without attention for its
// parts.
TEST(ServedModels, AllEndAsAResultOrRefused) {
  for (const std::string& model : config::default_library().names("models")) {
    SCOPED_TRACE(model);
    try {
      const RunRecord record = simulate(load(served(model, "{kind: vllm, host: {}}")));
      EXPECT_EQ(record.status, RunStatus::kOk) << record.reason;
    } catch (const config::ConfigError&) {
      // Encoders, and models with too few positions.
    }
  }
}

/// The time of a step of one prompt, or of one sequence, with the kernels of the engine; in ms.
double step_ms(const std::string& model, const std::string& phase) {
  const RunRecord record = simulate(load(
      "{experiment: inference, model: " + model +
          ", system: {extends: dgx_h100, accelerator: {extends: h100_sxm, memory: {capacity: 9 "
          "TB}}}, engine: {kind: vllm, host: {}, fusions: {router: on}}, " +
          phase + "}",
      {"system.accelerator.power.tdp=100 kW"}));
  return record.find("step_time_s")->value * 1e3;
}

/// A request of 300 tokens that nobody else's meets, and a host that takes no time. No cap holds:
/// a step of seconds has the clock of its heaviest window, a served one that of all of it.
TEST(ServedModels, ARequestAloneTakesTheTimeOfItsSteps) {
  constexpr double kTables = 0.01;  // tables of steps are straight between their rows
  for (const std::string& model : config::default_library().names("models")) {
    SCOPED_TRACE(model);
    try {
      const RunRecord record =
          simulate(load(served(model, "{kind: vllm, host: {}, fusions: {router: on}}"),
                        {"serving.workload.requests=1", "serving.workload.output=2",
                         "serving.fleet.0.system.accelerator.power.tdp=100 kW"}));
      const double prefill = step_ms(model, "phase: prefill, batch: {micro: 1, sequence: 300}");
      const double decode = step_ms(model, "phase: decode, batch: {micro: 1}, kv_length: 300");
      EXPECT_NEAR(record.find("mean_ttft_ms")->value / prefill, 1, kTables);
      EXPECT_NEAR(record.find("mean_tpot_ms")->value / decode, 1, kTables);
    } catch (const config::ConfigError&) {
      // Encoders, and models with too few positions.
    }
  }
}

ServingMemory memory_of(const std::string& model, const std::string& engine) {
  const LoadedExperiment loaded = load(served(model, engine));
  const auto& e = loaded.as<ServingExperiment>();
  return e.fleet().memory(e.serving.fleet).front();
}

// A counter-example once: windows of 262,144 tokens set aside for 1,024 sequences, 35 TB.
TEST(ServedModels, WhereAllLayersHaveWindowsBlocksHoldTheLatestTokens) {
  const ServingMemory memory = memory_of("phi_4_mini", "{kind: vllm, host: {}}");
  EXPECT_EQ(memory.set_aside.base(), 0);
  EXPECT_NEAR(memory.block.base() / (16.0 * 32 * 8 * 128 * 2 * 2), 1, 1e-6);
  EXPECT_EQ(memory.most_kept, 262144 + memory.window_chunk);
  EXPECT_DOUBLE_EQ(memory.requests(1'000'000'000), memory.requests(memory.most_kept));
  EXPECT_LT(memory.requests(memory.most_kept), memory.requests(memory.most_kept / 2));
}

/// Working memory of an engine is smaller than the memory of a device.
TEST(ServedModels, NoEngineReservesMoreThanADeviceToWork) {
  for (const char* engine : {"vllm", "sglang", "tensorrt_llm", "sarathi", "orca", "static"}) {
    for (const char* model : {"phi_4_mini", "gemma_2_9b", "gemma_3_1b", "mistral_7b", "rwkv_7_1_5b",
                              "falcon_mamba_7b", "llama_4_scout"}) {
      const ServingMemory memory = memory_of(model, std::string("{kind: ") + engine + "}");
      EXPECT_LT(memory.overheads().base(), 80e9) << model << ' ' << engine;
      EXPECT_GT(memory.blocks, 0) << model << ' ' << engine;
    }
  }
}

}  // namespace
}  // namespace orrery::served_models_test
