// SPDX-License-Identifier: Apache-2.0
// Published results that descriptions of accelerators are known to miss.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "sim/app/experiments/core/simulate.h"
#include "sim/machine/system_config.h"
#include "tests/unit/app/loaded_text.h"

namespace orrery::known_errors_test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;

RunRecord training(const std::string& system, const std::string& precision) {
  return simulate(
      test::load("{experiment: training, system: " + system +
                 ", model: {dimensions: {layers: 2, hidden: 1024, heads: 8, vocabulary: "
                 "32000}}, batch: {global: 1, micro: 1, sequence: 1024}, precision: " +
                 precision + "}"));
}

TEST(KnownErrors, AreInTheProvenanceOfRunsThatTheyConcern) {
  const RunRecord record = training("mi300x_platform", "fp8");
  ASSERT_EQ(record.status, RunStatus::kOk) << record.reason;
  EXPECT_THAT(record.provenance.at("known_errors"),
              ElementsAre(StartsWith("AMD Instinct MI300X: TransformerEngine of 2024")));
  EXPECT_THAT(rests_on(record), HasSubstr(", known error"));
}

TEST(KnownErrors, OfAnotherPrecisionOrDeviceAreNot) {
  EXPECT_FALSE(training("mi300x_platform", "bf16").provenance.contains("known_errors"));
  EXPECT_FALSE(training("dgx_h100", "fp8").provenance.contains("known_errors"));
}

TEST(KnownErrors, OfAServedFleetNameEachDeviceOnce) {
  const LoadedExperiment loaded = test::load(
      "{experiment: serving, model: llama_3_1_8b, serving: {workload: {rate: 1 /s, requests: 2, "
      "input: {fixed: 100}, output: {fixed: 10}}, fleet: [{name: a, system: gaudi2_server, engine: "
      "{kind: vllm}}, {name: b, system: gaudi2_server, engine: {kind: vllm}}, {name: c, system: "
      "dgx_h100, engine: {kind: vllm}}]}}");
  EXPECT_THAT(loaded.experiment->known_errors(),
              ElementsAre(HasSubstr("HabanaAI/vllm-fork pull request 233")));
}

// An interval that is known to miss a published result would say less than is known.
TEST(KnownErrors, LieWithinTheIntervalOfTheRunsThatTheyConcern) {
  const RunRecord found = training("mi300x_platform", "fp8");
  const Metric& step = *found.find("step_time_s");
  EXPECT_GE(step.interval->second, 3.7 * step.value);
  const Metric& rate = *found.find("tokens_per_s");
  EXPECT_LE(rate.interval->first, rate.value / 3.7);
  const Metric other = *training("mi300x_platform", "bf16").find("step_time_s");
  EXPECT_LT(other.interval->second, 2 * other.value);
}

TEST(KnownErrors, LieWithinTheIntervalOfServedRequests) {
  const RunRecord record = simulate(test::load(
      "{experiment: serving, model: llama_3_1_8b, serving: {workload: {rate: 0.1 /s, requests: 3, "
      "input: {fixed: 100}, output: {fixed: 10}}, fleet: [{system: gaudi2_server, engine: {kind: "
      "vllm, host: {iteration: 0 s}}}]}}"));
  const Metric& tpot = *record.find("mean_tpot_ms");
  EXPECT_GE(tpot.interval->second, 4.6 * tpot.value);
}

// A misspelt kind would concern no run, and nobody would see the error.
TEST(KnownErrors, OfTheLibraryNameAKindOfExperiment) {
  const config::Library& library = config::default_library();
  std::size_t found = 0;
  for (const std::string& name : library.names("accelerators")) {
    const auto device = config::load<AcceleratorConfig>(library.locate("accelerators", name, ""),
                                                        library, "accelerators");
    for (const KnownError& known : device.known_errors) {
      EXPECT_TRUE(ExperimentKinds::items().contains(known.experiment)) << name << known.experiment;
      EXPECT_GT(known.slower, 1) << name;
      ++found;
    }
  }
  EXPECT_GE(found, 3U);
}

}  // namespace
}  // namespace orrery::known_errors_test
