// SPDX-License-Identifier: Apache-2.0
#include "validation/checks/power_tables.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>
#include <fstream>
#include <string>

#include "sim/config/diagnostics.h"

namespace orrery::power_tables_test {
namespace {

using ::testing::HasSubstr;
using ::testing::SizeIs;

constexpr const char* kHeader =
    "system,precision,m,n,k,latency_us,power_w,power_limit_w,power_samples,framework,version,"
    "source\n";

std::string table(const std::string& rows, const std::string& header = kHeader) {
  std::string path = testing::TempDir() + std::to_string(::getpid()) + "_power_" +
                     testing::UnitTest::GetInstance()->current_test_info()->name() + ".csv";
  std::ofstream(path) << header << rows;
  return path;
}

// NVML's reading is the mean of a second.
TEST(PowerTables, ShortRunsDoNotTellThePowerOfAKernel) {
  EXPECT_TRUE(trusted_reading(300, 5, 0.5));
  EXPECT_FALSE(trusted_reading(300, 4, 0.5));
  EXPECT_FALSE(trusted_reading(299, 11, 0.96));
  EXPECT_TRUE(trusted_reading(100, 1, 0.97));
  EXPECT_FALSE(trusted_reading(99, 1, 1));
}

TEST(PowerTables, AReadingHoldsHalfOfTheRiseAfterAPauseAndAllOfItBehindAKernelAsHot) {
  EXPECT_DOUBLE_EQ(possible_reading(130, 530, 300), 330);
  EXPECT_DOUBLE_EQ(possible_reading(130, 530, 400), 400);
  EXPECT_DOUBLE_EQ(possible_reading(130, 530, 600), 530);
}

TEST(PowerTables, KernelsCountByFrameworkAndByWhetherTheLimitHoldsThem) {
  const std::string path = table(
      "h200_sxm,bf16,8192,8192,8192,1500,698,700,11,vllm,0.22,a\n"
      "h200_sxm,bf16,64,16384,16384,400,420,700,10,vllm,0.22,a\n"
      "h200_sxm,bf16,64,16384,16384,400,380,700,10,trtllm,1.3,a\n"
      "h200_sxm,bf16,1,128,128,5,300,700,1,vllm,0.22,a\n"
      "no_such_device,bf16,8192,8192,8192,1500,698,700,11,vllm,0.22,a\n");
  KernelPowerReport report;
  std::size_t heard = 0;
  add_power_table(path, read_operator_table(path), report,
                  [&](const std::string& text, const KernelPower& row) {
                    ++heard;
                    EXPECT_THAT(text, HasSubstr("h200_sxm"));
                    EXPECT_GT(row.predicted_w, 130);
                    EXPECT_LE(row.predicted_w, 700 * (1 + 1e-9));
                    EXPECT_GT(row.predicted_us, 0);
                  });
  std::remove(path.c_str());
  EXPECT_EQ(heard, 3U);
  EXPECT_EQ(report.short_runs, 1U);
  EXPECT_THAT(report.left_out, SizeIs(1));
  EXPECT_THAT(report.groups, SizeIs(3));
  const KernelPowerGroup& limit = report.groups.at({"gemm", "h200_sxm", "vllm", "at the limit"});
  EXPECT_EQ(limit.fitted.steady.size() + limit.held_out.readings.size(), 1U);
  EXPECT_EQ(report.groups.count({"gemm", "h200_sxm", "trtllm", "below the limit"}), 1U);
}

TEST(PowerTables, ATableOfTimesAloneHasNoPower) {
  const std::string path =
      table("h200_sxm,bf16,8192,8192,8192,1500,a\n", "system,precision,m,n,k,latency_us,source\n");
  KernelPowerReport report;
  try {
    add_power_table(path, read_operator_table(path), report);
    FAIL() << "no error";
  } catch (const config::ConfigError& error) {
    EXPECT_THAT(error.what(), HasSubstr("no column 'power_w'"));
  }
  std::remove(path.c_str());
}

}  // namespace
}  // namespace orrery::power_tables_test
