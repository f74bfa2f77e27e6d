// SPDX-License-Identifier: Apache-2.0
#include "validation/checks/serving_rows.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace orrery::serving_rows_test {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

ServingRow of_r1(const std::string& image, const std::string& date, int attention_dp = 1) {
  ServingRow row;
  row.model = "deepseek-ai/DeepSeek-R1";
  row.system = "b200_sxm";
  row.backend = "trtllm";
  row.image = "image=nvcr.io/nvidia/tensorrt-llm/release:" + image;
  row.date = date;
  row.precision = row.gemm_quant = "fp8";
  row.isl = row.osl = 1024;
  row.concurrency = 64;
  row.gpus = 8;
  row.attention_dp = attention_dp;
  return row;
}

std::string text_of(const ServingRow& row) { return serving_experiment(row, "deepseek_r1", true); }

TEST(ServingRows, GuessesAreThoseOfTheImage) {
  EXPECT_THAT(text_of(of_r1("1.2.0rc6.post3", "2026-02-05")),
              HasSubstr("num_speculative_tokens: 3, acceptance_length: 2.49"));
  EXPECT_THAT(text_of(of_r1("1.2.0rc6.post3", "2026-02-05", 8)),
              HasSubstr("num_speculative_tokens: 1, acceptance_length: 1.79"));
  EXPECT_THAT(text_of(of_r1("1.1.0rc2.post2", "2026-01-14")), HasSubstr("speculative"));
  EXPECT_THAT(text_of(of_r1("1.1.0rc2.post2", "2026-01-28")), Not(HasSubstr("speculative")));
  EXPECT_THAT(text_of(of_r1("1.2.0rc6.post2", "2026-01-29")), Not(HasSubstr("speculative")));
  ServingRow other = of_r1("1.2.0rc6.post3", "2026-02-05");
  other.model = "openai/gpt-oss-120b";
  EXPECT_THAT(text_of(other), Not(HasSubstr("speculative")));
}

TEST(ServingRows, ABatchOfGuessesFitsBesideAPrompt) {
  EXPECT_THAT(text_of(of_r1("1.2.0rc6.post2", "")), HasSubstr("max_num_tokens: 2048"));
  ServingRow row = of_r1("1.2.0rc6.post3", "");
  row.isl = 8192;
  EXPECT_THAT(text_of(row), HasSubstr("max_num_tokens: 8448"));  // 8192 + 4 x 64
}

TEST(ServingRows, DataParallelRanksWaitForEachOther) {
  EXPECT_THAT(text_of(of_r1("1.2.0rc6.post2", "")), Not(HasSubstr("attention_dp_config")));
  EXPECT_THAT(text_of(of_r1("1.2.0rc6.post2", "", 8)),
              HasSubstr("{enable_balance: true, timeout_iters: 60, batching_wait_iters: 0}"));
}

TEST(ServingRows, ARowWhoseClientsMostlyWaitIsKnown) {
  ServingRow row = of_r1("1.2.0rc6.post2", "");
  row.osl = 100;
  row.tpot_ms = 10;
  row.ttft_ms = 2000;
  EXPECT_FALSE(row.mostly_waits());
  row.ttft_ms = 2001;
  EXPECT_TRUE(row.mostly_waits());
}

TEST(ServingRows, HopperWidensGptOssByMarlinSinceVllm013) {
  ServingRow row = of_r1("", "");
  row.model = "openai/gpt-oss-120b";
  row.backend = "vllm";
  row.image = "image=vllm/vllm-openai:v0.18.0";
  row.system = "h100_sxm";
  row.version = "0.18.0";
  EXPECT_THAT(text_of(row), HasSubstr("moe_backend: marlin"));
  row.version = "0.11.2";
  EXPECT_THAT(text_of(row), Not(HasSubstr("marlin")));
  row.version = "0.18.0";
  row.system = "b200_sxm";
  EXPECT_THAT(text_of(row), Not(HasSubstr("marlin")));
}

}  // namespace
}  // namespace orrery::serving_rows_test
