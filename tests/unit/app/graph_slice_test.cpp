// SPDX-License-Identifier: Apache-2.0
// `graph slice`: parts of graphs as files that the other verbs read.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "sim/app/cli/command_line.h"

namespace orrery::graph_slice_test {
namespace {

using testing::HasSubstr;

/// Begin of the names of files and folders of this process.
const std::string kSliceFolder = testing::TempDir() + std::to_string(::getpid()) + "_slice";

class GraphSliceVerb : public testing::Test {
 protected:
  void SetUp() override {
    std::filesystem::remove_all(kSliceFolder);
    std::filesystem::create_directories(kSliceFolder);
    // Two kernels of 5 and 7 us, an all-reduce of 4 ranks behind them, and 2 us.
    for (int rank = 0; rank < 4; ++rank) {
      std::ofstream(in("t." + std::to_string(rank) + ".et")) << R"({"workload_graph": [
        {"Id": 1, "Name": "a", "NodeType": 4, "runtime": 5},
        {"Id": 2, "Name": "b", "NodeType": 4, "runtime": 7, "data_deps": [1]},
        {"Id": 3, "Name": "ar", "NodeType": 7, "runtime": 10, "comm_type": 0, "comm_size": 64,
         "data_deps": [2]},
        {"Id": 4, "Name": "c", "NodeType": 4, "runtime": 2, "data_deps": [3]}]})";
    }
  }
  void TearDown() override { std::filesystem::remove_all(kSliceFolder); }

  static std::string in(const std::string& name) { return kSliceFolder + "/" + name; }
  ExitCode run(const std::vector<std::string>& words) {
    testing::internal::CaptureStdout();
    testing::internal::CaptureStderr();
    const ExitCode code = run_command_line(words);
    out_ = testing::internal::GetCapturedStdout();
    error_ = testing::internal::GetCapturedStderr();
    return code;
  }
  nlohmann::json stats(const std::string& path) {
    EXPECT_EQ(run({"graph", "stats", path, "--json"}), ExitCode::kOk) << error_;
    return nlohmann::json::parse(out_);
  }

  std::string out_, error_;
};

TEST_F(GraphSliceVerb, RanksKeepTheirNumbersAndTheirGroups) {
  ASSERT_EQ(run({"graph", "slice", in("t"), "--ranks", "1,3", "-o", in("part"), "--json"}),
            ExitCode::kOk)
      << error_;
  const auto answer = nlohmann::json::parse(out_);
  EXPECT_EQ(answer.at("files"), nlohmann::json({in("part.1.et"), in("part.3.et")}));
  EXPECT_EQ(answer.at("nodes"), 8);
  EXPECT_EQ(answer.at("nodes_left_out"), 8);
  EXPECT_EQ(answer.at("dependencies_cut"), 0);
  EXPECT_EQ(stats(in("part")).at("ranks"), 4) << "the all-reduce still has 4";
  EXPECT_THAT(error_, HasSubstr("2 ranks have no file"));
  EXPECT_EQ(run({"graph", "verify", in("part")}), ExitCode::kOk) << error_;
}

TEST_F(GraphSliceVerb, WindowsAreThoseOfTheRecordedTimes) {
  ASSERT_EQ(run({"graph", "slice", in("t"), "--from", "5 us", "--until", "22 us", "-o", in("w")}),
            ExitCode::kOk)
      << error_;
  EXPECT_THAT(out_, HasSubstr("8 nodes in 4 files, 8 left out"));
  EXPECT_THAT(out_, HasSubstr("4 on nodes that are left out, 4 of such nodes"));
  EXPECT_NEAR(stats(in("w")).at("critical_path_s").get<double>(), 17e-6, 1e-12);
}

TEST_F(GraphSliceVerb, PartsWhoseTransfersDoNotMeetAreTold) {
  std::ofstream(in("t.3.et")) << R"({"workload_graph": [
        {"Id": 1, "Name": "a", "NodeType": 4, "runtime": 5},
        {"Id": 9, "Name": "ar", "NodeType": 7, "runtime": 10, "comm_type": 0, "comm_size": 64}]})";
  ASSERT_EQ(run({"graph", "slice", in("t"), "--ids", "1..3", "-o", in("p")}), ExitCode::kOk);
  EXPECT_THAT(error_, HasSubstr("do not meet"));
}

TEST_F(GraphSliceVerb, WordsThatAreNearlyRightAreNamed) {
  EXPECT_EQ(run({"graph", "slicee", in("t")}), ExitCode::kUsage);
  EXPECT_THAT(error_, HasSubstr("unknown command 'slicee'; did you mean 'slice'?"));
  EXPECT_EQ(run({"graph", "slice", in("t"), "--fromm", "1 us", "-o", in("x")}), ExitCode::kUsage);
  EXPECT_THAT(error_, HasSubstr("instead of --fromm did you mean --from?"));
}

TEST_F(GraphSliceVerb, WritesGraphvizToo) {
  ASSERT_EQ(run({"graph", "slice", in("t"), "--ranks", "0", "--upstream-of", "b", "--format", "dot",
                 "-o", in("g")}),
            ExitCode::kOk)
      << error_;
  EXPECT_TRUE(std::filesystem::exists(in("g.0.dot")));
}

TEST_F(GraphSliceVerb, MistakesAreUsageErrors) {
  const std::vector<std::pair<std::vector<std::string>, std::string>> mistakes = {
      {{"--ids", "5..1", "-o", in("x")}, "--ids 5..1: expected numbers or ranges, like 3,8..15"},
      {{"--ranks", "", "-o", in("x")}, "--ranks: is empty"},
      {{"--ranks", "9", "-o", in("x")}, "there is no rank 9"},
      {{"--from", "3", "-o", in("x")}, "--from 3"},
      {{"--from", "3 us", "--until", "2 us", "-o", in("x")}, "is not after --from"},
      {{"--name", "zz", "-o", in("x")}, "no node is left"},
      {{"--downstream-of", "aa", "-o", in("x")}, "did you mean 'a'"},
      {{"--format", "kineto", "-o", in("x")}, "there are: chakra, dot"},
      {{}, "needs -o PREFIX"}};
  for (const auto& [more, text] : mistakes) {
    std::vector<std::string> words = {"graph", "slice", in("t")};
    words.insert(words.end(), more.begin(), more.end());
    EXPECT_EQ(run(words), ExitCode::kUsage) << text;
    EXPECT_THAT(error_, HasSubstr(text));
  }
}

}  // namespace
}  // namespace orrery::graph_slice_test
