// SPDX-License-Identifier: Apache-2.0
#include "host/environment.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "device/nvml.h"
#include "host/names.h"

namespace orrery::measure::environment_test {
namespace {

using testing::HasSubstr;

constexpr double kUnknown = std::numeric_limits<double>::quiet_NaN();

TEST(Environment, ListsTheRunAndEveryMeasurement) {
  const RunInfo run{"0.1.0", "2026-01-31T12:00:00Z", "orrery-measure --quick", Depth::kQuick, 42};
  const std::vector<Outcome> outcomes = {
      {1, "pointer_chase", Status::kOk, "", 80, 4.5},
      {7, "mainloop", Status::kSkipped, "needs compute capability 9", 0, 0.25},
      {13, "gemm", Status::kFailed, "wrong \"result\"\nat 3", 12, 2},
  };
  EXPECT_EQ(environment_yaml(run, "device:\n  name: \"X\"\n", outcomes),
            "program: \"orrery-measure 0.1.0\"\n"
            "date: \"2026-01-31T12:00:00Z\"\n"
            "command_line: \"orrery-measure --quick\"\n"
            "depth: quick\n"
            "seed: 42\n"
            "device:\n"
            "  name: \"X\"\n"
            "measurements:\n"
            "  - number: 1\n"
            "    name: pointer_chase\n"
            "    status: ok\n"
            "    rows: 80\n"
            "    seconds: 4.5\n"
            "  - number: 7\n"
            "    name: mainloop\n"
            "    status: skipped\n"
            "    reason: \"needs compute capability 9\"\n"
            "    rows: 0\n"
            "    seconds: 0.25\n"
            "  - number: 13\n"
            "    name: gemm\n"
            "    status: failed\n"
            "    reason: \"wrong \\\"result\\\"\\x0aat 3\"\n"
            "    rows: 12\n"
            "    seconds: 2\n");
}

TEST(Environment, NamesTheDepth) {
  RunInfo run;
  run.depth = Depth::kFull;
  EXPECT_THAT(environment_yaml(run, "", {}), HasSubstr("depth: full\n"));
  run.depth = Depth::kPriority;
  EXPECT_THAT(environment_yaml(run, "", {}), HasSubstr("depth: priority\n"));
}

TEST(Environment, WithoutMeasurementsIsStillYaml) {
  EXPECT_THAT(environment_yaml({}, "", {}), HasSubstr("measurements: []\n"));
}

TEST(DeviceSection, WritesWhatTheDriverDoesNotTellAsNull) {
  DeviceReport report;
  report.device.name = "NVIDIA H200";
  report.device.major = 9;
  report.device.sms = 132;
  report.driver = "580.1";
  report.power_cap_w = kUnknown;
  report.state = {1980, 700.5, kUnknown};
  const std::string text = device_yaml(report);
  EXPECT_THAT(text, HasSubstr("  name: \"NVIDIA H200\"\n"));
  EXPECT_THAT(text, HasSubstr("  compute_capability: \"9.0\"\n"));
  EXPECT_THAT(text, HasSubstr("  multiprocessors: 132\n"));
  EXPECT_THAT(text, HasSubstr("  driver: \"580.1\"\n"));
  EXPECT_THAT(text, HasSubstr("  uuid: null\n"));
  EXPECT_THAT(text, HasSubstr("  power_cap_w: null\n"));
  EXPECT_THAT(text, HasSubstr("  power_w_at_start: 700.5\n"));
  EXPECT_THAT(text, HasSubstr("  temperature_c_at_start: null\n"));
}

TEST(Utc, IsIso8601) {
  // 2026-01-31T12:00:00Z is 20484 days and 12 hours after the epoch: 56 years of 365 days are
  // 20440, 14 leap days (1972 to 2024), 30 days of January.
  const std::chrono::system_clock::time_point moment{
      std::chrono::seconds{20484 * 86400LL + 12 * 3600}};
  EXPECT_EQ(utc(moment), "2026-01-31T12:00:00Z");
}

TEST(SystemName, KnowsTheCustomaryOnes) {
  EXPECT_EQ(system_name("NVIDIA H200"), "h200_sxm");
  EXPECT_EQ(system_name("NVIDIA H100 80GB HBM3"), "h100_sxm");
  EXPECT_EQ(system_name("NVIDIA A100-SXM4-80GB"), "a100_sxm");
  EXPECT_EQ(system_name("NVIDIA B200"), "b200_sxm");
  EXPECT_EQ(system_name("NVIDIA GB200"), "gb200");
}

TEST(SystemName, DoesNotTakeOnePartForAnother) {
  EXPECT_EQ(system_name("NVIDIA H100 PCIe"), "h100_pcie");
  EXPECT_EQ(system_name("NVIDIA H200 NVL"), "h200_nvl");
  EXPECT_EQ(system_name("NVIDIA A100-SXM4-40GB"), "a100_sxm_40gb");
  EXPECT_EQ(system_name("NVIDIA GeForce RTX 4090"), "geforce_rtx_4090");
  EXPECT_EQ(system_name(" - "), "unknown");
}

TEST(Nvml, AnswersUnknownForAGpuThatIsNotThere) {
  // No machine has this bus; where the library is missing the answer is the same.
  const Nvml nvml("FFFF:FF:1F.7");
  const DeviceState state = nvml.state();
  EXPECT_NE(state.sm_clock_mhz, state.sm_clock_mhz);
  EXPECT_NE(state.power_w, state.power_w);
  EXPECT_NE(state.temperature_c, state.temperature_c);
  EXPECT_NE(nvml.power_cap_w(), nvml.power_cap_w());
  EXPECT_EQ(nvml.driver_version(), "");
  EXPECT_EQ(nvml.ecc(), "");
}

}  // namespace
}  // namespace orrery::measure::environment_test
