// SPDX-License-Identifier: Apache-2.0
#include "sim/app/questions/describe/describe.h"

#include <gtest/gtest.h>

#include <string>

#include "sim/config/load.h"

namespace orrery::describe_topology_test {
namespace {

SystemConfig shipped(const std::string& name) {
  const config::Library library(std::string(ORRERY_SOURCE_DIR) + "/configs");
  return config::load<SystemConfig>(library.locate("systems", name, ""), library, "systems");
}

TEST(DescribeTopology, CountsTheChipsOfCloudMatrixAndItsPaths) {
  const auto json = describe_topology(shipped("cm384"), 1).json;
  EXPECT_EQ(json.at("l1_switch").at("chips"), 336);
  EXPECT_EQ(json.at("l2_switch").at("chips"), 112);
  EXPECT_EQ(json.at("l2_switch").at("most_ports"), 48);
  EXPECT_EQ(json.at("shortest paths there"), 112);
  EXPECT_EQ(json.at("longest way"), 4);
}

// 36 GPUs of a rack send 900 GB/s each to the other 36.
TEST(DescribeTopology, TheBisectionOfNvl72IsThatOfHalfItsGpus) {
  const auto json = describe_topology(shipped("gb200_nvl72"), 1).json;
  EXPECT_NEAR(json.at("bisection").get<double>(), 36 * 900e9, 1);
  EXPECT_EQ(json.at("nvswitch").at("chips"), 18);
}

TEST(DescribeTopology, GpusOfDgxA100ShareFourPcieSwitches) {
  const auto json = describe_topology(shipped("dgx_a100"), 1).json;
  EXPECT_EQ(json.at("pcie").at("chips"), 4);
  EXPECT_EQ(json.at("pcie").at("most_ports"), 3);
  EXPECT_EQ(json.at("host").at("chips"), 1);
}

TEST(DescribeTopology, SeveralNodesHaveTheLeavesAndSpinesOfTheSuperPod) {
  const auto json = describe_topology(shipped("dgx_h100"), 63).json;
  EXPECT_EQ(json.at("leaf").at("chips"), 16);
  EXPECT_EQ(json.at("spine").at("chips"), 8);
}

TEST(DescribeTopology, DotHasOneEdgeForParallelLinks) {
  const std::string dot = topology_dot(shipped("dgx_h100"), 1);
  EXPECT_NE(dot.find("graph \"NVIDIA DGX H100\""), std::string::npos);
  EXPECT_NE(dot.find("[label=\"5 x 25 GB/s\"]"), std::string::npos);
}

}  // namespace
}  // namespace orrery::describe_topology_test
