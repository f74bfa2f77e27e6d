// SPDX-License-Identifier: Apache-2.0
// Verbs about operator graphs of other programs.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "sim/app/cli/command_line.h"

namespace orrery::graph_tools_test {
namespace {

/// Begin of the names of files and folders of this process.
const std::string kTemp = testing::TempDir() + std::to_string(::getpid()) + "_";

using testing::HasSubstr;

class GraphTools : public testing::Test {
 protected:
  void SetUp() override {
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directories(folder_);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  std::string write(const std::string& name, const std::string& nodes) const {
    std::ofstream(folder_ + "/" + name) << R"({"workload_graph": [)" << nodes << "]}";
    return folder_ + "/" + name;
  }
  ExitCode run(const std::vector<std::string>& words) {
    testing::internal::CaptureStdout();
    testing::internal::CaptureStderr();
    const ExitCode code = run_command_line(words);
    out_ = testing::internal::GetCapturedStdout();
    error_ = testing::internal::GetCapturedStderr();
    return code;
  }

  std::string folder_ = kTemp + "graph_tools";
  std::string out_, error_;
};

const std::string kTwoKernels =
    R"({"Id": 1, "Name": "a", "NodeType": 4, "runtime": 5, "num_ops": 100, "tensor_size": 8},
       {"Id": 2, "Name": "b", "NodeType": 4, "runtime": 7, "data_deps": [1]},
       {"Id": 3, "Name": "c", "NodeType": 4, "runtime": 2})";

TEST_F(GraphTools, StatsCountNodesBytesAndTheLongestChain) {
  const std::string file = write("two.json", kTwoKernels);
  ASSERT_EQ(run({"graph", "stats", file, "--json"}), ExitCode::kOk) << error_;
  const auto stats = nlohmann::json::parse(out_);
  EXPECT_EQ(stats.at("nodes"), 3);
  EXPECT_EQ(stats.at("dependencies"), 1);
  EXPECT_EQ(stats.at("flops"), 100);
  EXPECT_EQ(stats.at("kinds").at("kernel").at("nodes"), 3);
  EXPECT_NEAR(stats.at("critical_path_s").get<double>(), 12e-6, 1e-15);
  EXPECT_EQ(stats.at("critical_path_nodes"), 2);
}

TEST_F(GraphTools, VerifyTellsCyclesAndRepairMendsThem) {
  const std::string file =
      write("cycle.json", R"({"Id": 1, "Name": "a", "NodeType": 4, "data_deps": [2]},
                             {"Id": 2, "Name": "b", "NodeType": 4, "data_deps": [1]})");
  EXPECT_EQ(run({"graph", "verify", file}), ExitCode::kUsage);
  EXPECT_THAT(error_, HasSubstr("2 nodes wait for each other"));
  EXPECT_EQ(run({"graph", "verify", file, "--repair"}), ExitCode::kOk) << error_;
  EXPECT_THAT(error_, HasSubstr("1 dependency in cycles, dropped"));
}

TEST_F(GraphTools, VerifyTellsTransfersThatDoNotMeet) {
  const auto reduce = [](int bytes) {
    return R"({"Id": 1, "Name": "ar", "NodeType": 7, "comm_type": 0, "comm_size": )" +
           std::to_string(bytes) + "}";
  };
  write("t.0.et", reduce(64));
  write("t.1.et", reduce(65));
  EXPECT_EQ(run({"graph", "verify", folder_ + "/t"}), ExitCode::kUsage);
  EXPECT_THAT(error_, HasSubstr("one has 64 B, the other 65 B"));
  write("t.1.et", reduce(64));
  EXPECT_EQ(run({"graph", "verify", folder_ + "/t"}), ExitCode::kOk) << error_;
}

TEST_F(GraphTools, DiffNamesTheFiguresThatDiffer) {
  const std::string file = write("a.json", kTwoKernels);
  const std::string other =
      write("b.json", R"({"Id": 1, "Name": "a", "NodeType": 4, "runtime": 5})");
  ASSERT_EQ(run({"graph", "diff", file, other, "--json"}), ExitCode::kOk) << error_;
  EXPECT_THAT(out_, HasSubstr("\"figure\": \"nodes\""));
  ASSERT_EQ(run({"graph", "diff", file, file}), ExitCode::kOk) << error_;
  EXPECT_EQ(out_, "no figure differs\n");
}

TEST_F(GraphTools, DotHasANodeAndAnEdgeForEach) {
  const std::string file = write("dot.json", kTwoKernels);
  ASSERT_EQ(run({"graph", "dot", file}), ExitCode::kOk) << error_;
  EXPECT_THAT(out_, HasSubstr("n0 -> n1;"));
}

}  // namespace
}  // namespace orrery::graph_tools_test
