// SPDX-License-Identifier: Apache-2.0
#include "validation/checks/host_fit.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/app/serving_row.h"

namespace orrery::host_fit_test {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

using test::row_of;

const std::string kSmall = "Qwen/Qwen2.5-3B", kLarge = "meta-llama/Llama-3.1-8B";

TEST(HostFit, RowsOfGroupsAreFittedAndAllOthersJudge) {
  std::vector<ServingRow> rows;
  for (int i = 1; i <= 100; ++i) rows.push_back(row_of(kSmall, i));
  for (int i = 1; i <= 100; ++i) rows.push_back(row_of(kLarge, i));
  rows.push_back(row_of(kLarge, 1));
  rows.back().backend = "sglang";
  const HostFitRows split = host_fit_rows(rows, "vllm", {"Qwen2.5-3B@h100_sxm"});
  EXPECT_EQ(split.fitted.size(), 64);
  for (const ServingRow& row : split.fitted) {
    EXPECT_EQ(row.model, kSmall);
    EXPECT_LE(row.concurrency, 64);
  }
  EXPECT_EQ(split.held_out.size(), 100);
  EXPECT_THAT([&] { host_fit_rows(rows, "vllm", {"Qwen2.5-3B@b200_sxm"}); },
              ThrowsMessage<config::ConfigError>(HasSubstr("are of 'Qwen2.5-3B@b200_sxm'")));
  EXPECT_THAT([&] { host_fit_rows(rows, "sglang", {"Llama-3.1-8B@h100_sxm"}); },
              ThrowsMessage<config::ConfigError>(HasSubstr("left to judge the fit by")));
}

// Version 0.17 norms inside of all-reduces, 0.16 does not: their kernels have other prices.
TEST(ServingValidation, ARowIsPredictedAlikeWhicheverVersionsCameBeforeIt) {
  ServingRow older = row_of(kLarge, 1), newer = older;
  older.gpus = newer.gpus = 2;
  older.version = "0.16.0";
  ServingValidation alone, after;
  const ServingComparison first = after.compare(older);
  ASSERT_EQ(first.reason, "");
  const double tpot = after.compare(newer).tpot_ms;
  EXPECT_EQ(tpot, alone.compare(newer).tpot_ms);
  EXPECT_LT(tpot, first.tpot_ms);
}

/// Rows as a host that takes so long would have measured them.
std::vector<ServingRow> measured_with(const HostCosts& host) {
  ServingValidation validation;
  validation.set_host(host);
  std::vector<ServingRow> rows = {row_of(kSmall, 1), row_of(kSmall, 2), row_of(kLarge, 1)};
  for (ServingRow& row : rows) {
    const ServingComparison c = validation.compare(row);
    EXPECT_EQ(c.reason, "");
    row.ttft_ms = c.ttft_ms;
    row.tpot_ms = c.tpot_ms;
  }
  return rows;
}

TEST(HostFit, TakesTheVersionsThatItIsToldTo) {
  std::vector<ServingRow> rows;
  for (const char* version : {"0.11.0", "0.18.0", ""}) {
    for (const std::string& model : {kSmall, kLarge}) {
      rows.push_back(row_of(model, 1));
      rows.back().version = version;
    }
  }
  const auto held_out = [&](const std::vector<std::string>& versions) {
    return host_fit_rows(rows, "vllm", {"Qwen2.5-3B@h100_sxm"}, versions).held_out.size();
  };
  EXPECT_EQ(held_out({}), 3);
  EXPECT_EQ(held_out({"0.1"}), 2);
  EXPECT_EQ(held_out({"0.11", "none"}), 2);
  EXPECT_EQ(held_out({"0.18"}), 1);
}

TEST(HostFit, FindsTheDelayOfRequestsThatRunsWereMadeWith) {
  HostCosts host;
  host.request = Seconds(0.03);
  const HostFitRows rows = host_fit_rows(measured_with(host), "vllm", {"Qwen2.5-3B@h100_sxm"});
  ServingValidation validation;
  const HostFit fit = fit_host(validation, rows);
  EXPECT_NEAR(fit.host.request.base(), 0.03, 0.002);
  EXPECT_NEAR(fit.host.iteration.base(), 0, 1e-4);
  EXPECT_GT(fit.held_out_before.ttft.mape, 0.3);
  EXPECT_LT(fit.held_out.ttft.mape, 0.07);
  EXPECT_EQ(fit.groups.count("Llama-3.1-8B@h100_sxm"), 1);
}

TEST(HostFit, SaysWhyNoRowCanBePredicted) {
  std::vector<ServingRow> table = {row_of(kSmall, 1), row_of(kLarge, 1)};
  for (ServingRow& row : table) row.system = "no_such_system";
  const HostFitRows rows = host_fit_rows(table, "vllm", {"Qwen2.5-3B@no_such_system"});
  ServingValidation validation;
  EXPECT_THAT([&] { fit_host(validation, rows); },
              ThrowsMessage<config::ConfigError>(
                  AllOf(HasSubstr("none of the rows to fit on can be predicted: "),
                        HasSubstr("no_such_system"))));
}

/// Clients of SGLang that no protocol is known of.
ServingRow unknown_clients(double ttft_ms) {
  ServingRow row = row_of(kLarge, 64);
  row.backend = "sglang";
  row.version = "";
  row.image = "silicon_concurrency=64";
  row.isl = 2048;
  row.osl = 64;
  row.ttft_ms = ttft_ms;
  row.tpot_ms = 100;
  return row;
}

TEST(ServingRows, FirstTokensSoonerThanAWaveMeanThatClientsDoNotComeTogether) {
  // 64 prompts of 2,048 tokens are 2.2 PFLOP, 2.2 s at the peak of an H100: half of it, in the
  // mean.
  ServingValidation waves, spread_out;
  waves.learn_protocols({unknown_clients(1200)});
  spread_out.learn_protocols({unknown_clients(1200), unknown_clients(800)});
  const ServingComparison wave = waves.compare(unknown_clients(1200));
  const ServingComparison spread = spread_out.compare(unknown_clients(1200));
  EXPECT_LT(spread.ttft_ms, 0.5 * wave.ttft_ms);
  EXPECT_GT(spread.tpot_ms, 1.2 * wave.tpot_ms);  // prompts of others come between
}

TEST(ServingRows, CachesThatDoNotFitAreNoRun) {
  ServingRow row = unknown_clients(1000);
  row.backend = "vllm";
  row.concurrency = 1024;
  row.isl = 8192;
  row.tpot_ms = 1000;  // nearly all are answered at a time: a terabyte of keys and values
  EXPECT_THAT(ServingValidation().compare(row).reason, HasSubstr("do not fit"));
}

TEST(ServingRows, FirstTokensThatTellNothingAreNotJudged) {
  ServingRow row = row_of("meta-llama/Llama-3.1-70B", 8);
  EXPECT_TRUE(row.tells_ttft());
  row.ttft_ms = 3001;  // waits in line
  EXPECT_FALSE(row.tells_ttft());
  row.ttft_ms = 100;
  row.backend = "trtllm";
  row.isl = row.osl = 1024;
  row.gpus = 4;
  EXPECT_FALSE(row.tells_ttft());
  row.gpus = 8;
  EXPECT_TRUE(row.tells_ttft());
  row.image = "silicon_concurrency=8";
  EXPECT_FALSE(row.tells_ttft());
}

}  // namespace
}  // namespace orrery::host_fit_test
