// SPDX-License-Identifier: Apache-2.0
// Measured all-reduces of engines beside their prices.
#include "validation/checks/collective_validation.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <map>

#include "sim/app/experiments/core/exit_codes.h"

namespace orrery::collective_validation_test {
namespace {

using testing::ElementsAre;
using testing::Pair;

constexpr const char* kHeader =
    "system,framework,version,kernel,precision,ranks,bytes,latency_us,source\n";

CollectiveTable table_of(const std::string& rows, const std::vector<std::string>& where = {}) {
  const auto path = std::filesystem::temp_directory_path() /
                    ("orrery_collective_validation_" + std::to_string(::getpid()) + ".csv");
  std::ofstream(path) << kHeader << rows;
  const CollectiveTable table = read_collective_table(path.string(), row_conditions(where));
  std::filesystem::remove(path);
  return table;
}

/// Predicted microseconds by engine.
std::map<std::string, double> predicted(const CollectiveTable& table) {
  std::map<std::string, double> times;
  CollectiveValidation validation("auto", false);
  validation.add(table, [&](const CollectiveRow& row, const PricedTransfer& priced, const char*) {
    times[row.engine.name()] = priced.isolated_time.base() * 1e6;
  });
  return times;
}

TEST(CollectiveValidation, AnEngineIsPricedByItsOwnAllReduce) {
  // 1 MiB over 8 H200, measured: TensorRT-LLM 26 us, SGLang 14 us.
  const auto times = predicted(
      table_of("h200_sxm,trtllm,1.3.0rc20,TRTLLM,bf16,8,1048576,26,\n"
               "h200_sxm,sglang,0.5.10,SGLang_CustomAllReduce_graph,bf16,8,1048576,14,\n"));
  EXPECT_NEAR(times.at("trtllm 1.3.0rc20"), 26, 0.15 * 26);
  EXPECT_LT(times.at("sglang 0.5.10"), 0.8 * times.at("trtllm 1.3.0rc20"));
}

TEST(CollectiveValidation, RowsOfEachVersionAreSummarisedAlone) {
  CollectiveValidation validation("auto", false);
  validation.add(
      table_of("h200_sxm,vllm,0.19.0,vLLM_custom_graph,bf16,8,65536,8,\n"
               "h200_sxm,vllm,0.24.0,vLLM_custom_graph,bf16,8,65536,8,\n"));
  for (const auto& [key, group] : validation.groups())
    EXPECT_EQ(group.rows.size(), 1) << key.engine.name();
}

TEST(CollectiveValidation, RowsThatTheHostLaunchedOneByOneAreLeftOut) {
  CollectiveValidation validation("auto", false);
  validation.add(table_of("h200_sxm,vllm,0.24.0,vLLM_custom_eager,bf16,8,65536,22,\n"));
  EXPECT_THAT(validation.left_out(),
              ElementsAre(Pair("vLLM_custom_eager: the host launched them one by one", 1)));
  EXPECT_THROW(validation.check_rows(), UsageError);
}

TEST(CollectiveValidation, ConditionsChooseRows) {
  const std::string rows =
      "h200_sxm,vllm,0.19.0,vLLM_custom_graph,bf16,8,65536,8,\n"
      "h200_sxm,vllm,0.24.0,vLLM_custom_graph,bf16,8,65536,8,\n";
  EXPECT_EQ(table_of(rows, {"version=0.24.0"}).rows.size(), 1);
  EXPECT_EQ(table_of(rows, {"version=0.19.0,0.24.0"}).rows.size(), 2);
}

}  // namespace
}  // namespace orrery::collective_validation_test
