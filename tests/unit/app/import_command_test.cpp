// SPDX-License-Identifier: Apache-2.0
// What `orrery import` prints and writes; the importers have tests of their own.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>

#include "sim/app/cli/command_line.h"

namespace orrery::import_command_test {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;
using testing::StartsWith;

std::string data(const std::string& name) {
  return ORRERY_SOURCE_DIR "/tests/unit/importers/data/" + name;
}

std::string output_of(const std::vector<std::string>& words) {
  testing::internal::CaptureStdout();
  const ExitCode code = run_command_line(words);
  std::string out = testing::internal::GetCapturedStdout();
  EXPECT_EQ(code, ExitCode::kOk);
  return out;
}

TEST(Import, WritesOneCsvOfAllFilesAndSaysWhatItHolds) {
  const fs::path file =
      fs::temp_directory_path() / ("orrery_import_" + std::to_string(::getpid()) + ".csv");
  const std::string out = output_of(
      {"import", "sglang", data("sglang.jsonl"), data("sglang.jsonl"), "-o", file.string()});
  EXPECT_THAT(out, HasSubstr("total_token_throughput"));
  EXPECT_THAT(out, testing::Not(HasSubstr("p90_ttft_ms")));  // in no row
  EXPECT_THAT(out, HasSubstr("4 rows in " + file.string() + "\n"));
  std::ifstream stream(file);
  const std::string csv{std::istreambuf_iterator<char>(stream), {}};
  EXPECT_THAT(csv, StartsWith("model,backend,request_rate,max_concurrency,duration_s,"));
  EXPECT_THAT(csv, HasSubstr("p90_ttft_ms"));
  EXPECT_THAT(csv, HasSubstr(",file\n,sglang,inf,16,10,51200,6400,50,5,,640,5760,120,110,,,400,"));
  EXPECT_EQ(std::count(csv.begin(), csv.end(), '\n'), 5);
  fs::remove(file);
}

TEST(Import, JsonHasNumbersNotesAndNullsAndWritesNothingWithoutOutput) {
  const auto json =
      nlohmann::json::parse(output_of({"import", "nccl-tests", data("all_reduce.log"), "--json"}));
  EXPECT_EQ(json.at("schema"), "orrery.import/1");
  EXPECT_EQ(json.at("kind"), "nccl-tests");
  ASSERT_EQ(json.at("rows").size(), 3U);
  EXPECT_EQ(json.at("rows")[0].at("latency_us"), 8.0);
  EXPECT_EQ(json.at("rows")[0].at("ranks"), 2);
  EXPECT_EQ(json.at("rows")[0].at("file"), data("all_reduce.log"));
  EXPECT_EQ(json.at("notes").size(), 2U);
  const auto ncu =
      nlohmann::json::parse(output_of({"import", "ncu", data("ncu_details.csv"), "--json"}));
  EXPECT_TRUE(ncu.at("rows")[1].at("sm_clock_hz").is_null());
}

TEST(Import, AnUnknownKindListsThoseThatThereAre) {
  testing::internal::CaptureStderr();
  EXPECT_EQ(run_command_line({"import", "ncll-tests", "x"}), ExitCode::kUsage);
  const std::string said = testing::internal::GetCapturedStderr();
  EXPECT_THAT(said,
              HasSubstr("no importer 'ncll-tests'; did you mean 'nccl-tests'?\nthere are:\n"));
  EXPECT_THAT(said, HasSubstr("\n  sglang: results of "));
}

}  // namespace
}  // namespace orrery::import_command_test
