// SPDX-License-Identifier: Apache-2.0
#include "sim/app/experiments/core/carbon.h"

#include <gtest/gtest.h>

#include "sim/app/experiments/core/simulate.h"
#include "sim/units/text.h"
#include "tests/unit/app/loaded_text.h"

namespace orrery::carbon_test {
namespace {

using test::load;

constexpr const char* kTraining =
    "{experiment: training, system: dgx_h100, model: llama_3_1_8b, parallel: {tp: 8}, batch: "
    "{global: 1, micro: 1, sequence: 2048}, carbon_intensity: 360 gCO2/kWh}";
constexpr const char* kInference =
    "{experiment: inference, system: dgx_h100, model: llama_3_1_8b, parallel: {tp: 8}, batch: "
    "{micro: 4, sequence: 1}, kv_length: 512, carbon_intensity: 360 gCO2/kWh}";
constexpr const char* kServing =
    "{experiment: serving, model: llama_3_1_8b, serving: {carbon_intensity: 360 gCO2/kWh, "
    "workload: {rate: 50 /s, requests: 60, input: 512, output: 4}, "
    "fleet: [{system: dgx_h100, engine: {kind: vllm}}]}}";
double metric(const RunRecord& record, const char* name) { return record.find(name)->value; }

/// 360 g for a kWh are 0.1 mg for a joule: 100 g for 10^6 tokens of 1 J.
TEST(Carbon, AMillionTokensEmitTheCarbonOfTheirSystemsEnergy) {
  for (const char* text : {kTraining, kInference, kServing}) {
    const RunRecord record = simulate(load(text));
    EXPECT_NEAR(metric(record, "co2_per_million_tokens"),
                100 / metric(record, "system_tokens_per_joule"),
                1e-12 * metric(record, "co2_per_million_tokens"))
        << text;
  }
}

TEST(Carbon, AStepEmitsTheCarbonOfItsSystemsEnergy) {
  for (const char* text : {kTraining, kInference}) {
    const RunRecord record = simulate(load(text));
    const double grams = 1e-4 * metric(record, "system_power_w") * metric(record, "step_time_s");
    EXPECT_NEAR(metric(record, "co2_per_step"), grams, 1e-12 * grams) << text;
  }
}

TEST(Carbon, WithoutPowerOfSystemsItIsThatOfAccelerators) {
  RunRecord record;
  record.metrics = {
      {"tokens_per_joule", 0.5, "1/J", {}}, {"energy_j", 20, "J", {}}, {"step_time_s", 2, "s", {}}};
  report_carbon(parse<CarbonIntensity>("3.6 kg CO2/kWh"), record);  // 1 mg for a joule
  EXPECT_DOUBLE_EQ(metric(record, "co2_per_million_tokens"), 2000);
  EXPECT_DOUBLE_EQ(metric(record, "co2_per_step"), 0.02);
}

TEST(Carbon, IsProportionalToTheIntensity) {
  for (const char* text : {kTraining, kInference, kServing}) {
    const std::string key = text == kServing ? "serving.carbon_intensity=" : "carbon_intensity=";
    const RunRecord once = simulate(load(text));
    const RunRecord thrice = simulate(load(text, {key + "1.08 t CO2/MWh"}));
    for (const char* name : {"co2_per_million_tokens", "co2_per_step"}) {
      if (once.find(name) == nullptr) continue;
      EXPECT_NEAR(metric(thrice, name), 3 * metric(once, name), 1e-9 * metric(thrice, name));
    }
    EXPECT_EQ(metric(once, "energy_j"), metric(thrice, "energy_j"));
  }
}

TEST(Carbon, IsReportedOnlyWithAnIntensity) {
  for (const char* value : {"null", "0 gCO2/kWh"}) {
    const RunRecord record = simulate(load(kInference, {std::string("carbon_intensity=") + value}));
    EXPECT_EQ(record.find("co2_per_million_tokens"), nullptr);
    EXPECT_EQ(record.find("co2_per_step"), nullptr);
  }
}

/// The interval is that of the energy of 10^6 tokens.
TEST(Carbon, HasTheIntervalOfTokensPerJoule) {
  for (const char* text : {kTraining, kInference, kServing}) {
    const RunRecord record = simulate(load(text));
    const auto& carbon = *record.find("co2_per_million_tokens")->interval;
    const auto& tokens = *record.find("system_tokens_per_joule")->interval;
    EXPECT_NEAR(carbon.first, 100 / tokens.second, 2e-3 * carbon.first) << text;
    EXPECT_NEAR(carbon.second, 100 / tokens.first, 2e-3 * carbon.second) << text;
  }
}

}  // namespace
}  // namespace orrery::carbon_test
