// SPDX-License-Identifier: Apache-2.0
#include "models/collectives/plans/user_algorithm.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>
#include <string>

#include "sim/config/diagnostics.h"
#include "tests/unit/models/transfers/flow_checks.h"
#include "tests/unit/models/transfers/test_systems.h"

namespace orrery::user_algorithm_test {
namespace {

using namespace orrery::fixtures;
using ::testing::AllOf;
using ::testing::HasSubstr;

/// Writes a file of its own for every text.
std::string file_with(const std::string& text) {
  static int count = 0;
  const std::string test = ::testing::UnitTest::GetInstance()->current_test_info()->name();
  const std::string path =
      ::testing::TempDir() + std::to_string(::getpid()) + test + std::to_string(count++) + ".yaml";
  std::ofstream(path) << text;
  return path;
}

std::string error_of(const std::string& text) {
  try {
    find_algorithm(file_with(text));
  } catch (const config::ConfigError& e) {
    return e.what();
  }
  return "no error";
}

TEST(UserAlgorithm, TheExampleIsAnAllGatherInTwoSteps) {
  const std::string path =
      std::string(ORRERY_SOURCE_DIR) + "/configs/collectives/neighbour_exchange_4.yaml";
  const FlowModel network(dgx_h100(), 1, path);
  const PricedTransfer priced =
      network.price(transfer(TransferKind::kAllGather, 4_MB, {{2, 3, 5, 7}}));
  EXPECT_EQ(priced.algorithm, path);
  EXPECT_EQ(priced.scale_up_steps, 2);
  // Every rank sends 3 of 4 chunks of 1 MB at 450 GB/s, after two steps of 1 us.
  EXPECT_DOUBLE_EQ(priced.isolated_time.base(), 2e-6 + 3e6 / 450e9);
}

TEST(UserAlgorithm, OtherGroupsAreLeftToTheRegisteredOnes) {
  const std::string path =
      std::string(ORRERY_SOURCE_DIR) + "/configs/collectives/neighbour_exchange_4.yaml";
  const FlowModel network(dgx_h100(), 1, path);
  EXPECT_NE(network.price(transfer(TransferKind::kAllGather, 4_MB, {range(0, 5)})).algorithm, path);
  EXPECT_NE(network.price(transfer(TransferKind::kAllReduce, 4_MB, {range(0, 4)})).algorithm, path);
}

TEST(UserAlgorithm, AMessageBeforeItsTimeIsShownInItsLine) {
  const std::string error = error_of(
      "collective: broadcast\nranks: 3\nchunks: 1\nsteps:\n"
      "  - - {from: 0, to: 1, chunk: 0}\n"
      "    - {from: 1, to: 2, chunk: 0}\n");
  EXPECT_THAT(error, AllOf(HasSubstr(".yaml:6:7: error: step 0: rank 1 sends chunk 0 before"),
                           HasSubstr("this is no broadcast")));
}

TEST(UserAlgorithm, AContributionAddedTwiceIsShownInItsLine) {
  const std::string error = error_of(
      "collective: reduce\nranks: 2\nchunks: 1\nsteps:\n"
      "  - - {from: 1, to: 0, chunk: 0, op: reduce}\n"
      "  - - {from: 1, to: 0, chunk: 0, op: reduce}\n");
  EXPECT_THAT(error, AllOf(HasSubstr(".yaml:6:7: error: step 1: rank 0 gets the contribution of "
                                     "rank 1 to chunk 0 twice")));
}

TEST(UserAlgorithm, WhatIsMissingAtTheEndIsNamed) {
  const std::string error = error_of(
      "collective: all_gather\nranks: 2\nchunks: 2\nsteps:\n"
      "  - - {from: 1, to: 0, chunk: 1}\n");
  EXPECT_THAT(error, AllOf(HasSubstr(".yaml:1:13: error: rank 1 ends with chunk 0 without"),
                           HasSubstr("no step wrote it")));
}

TEST(UserAlgorithm, RanksAndChunksThatDoNotExistAreErrors) {
  const std::string head = "collective: broadcast\nranks: 2\nchunks: 2\nsteps:\n";
  EXPECT_THAT(error_of(head + "  - - {from: 0, to: 2, chunk: 0}\n"), HasSubstr("no member 2"));
  EXPECT_THAT(error_of(head + "  - - {from: 0, to: 1, chunk: 1, count: 2}\n"),
              HasSubstr("no chunk 2 of 2"));
  EXPECT_THAT(error_of(head + "  - - {from: 0, to: 0, chunk: 1}\n"), HasSubstr("to itself"));
}

TEST(UserAlgorithm, KeysAreChecked) {
  EXPECT_THAT(error_of("collective: broadcast\nranks: 2\nchunk: 2\nsteps: []\n"),
              HasSubstr("did you mean 'chunks'?"));
  EXPECT_THAT(error_of("collective: broadcats\nranks: 2\nchunks: 2\nsteps: []\n"),
              HasSubstr("did you mean 'broadcast'?"));
  EXPECT_THAT(error_of("collective: all_gather\nranks: 1024\nchunks: 65536\nsteps: []\n"),
              HasSubstr("ranks * ranks * chunks is more than 2^26: too large to be proved right"));
}

}  // namespace
}  // namespace orrery::user_algorithm_test
