// SPDX-License-Identifier: Apache-2.0
// Small parts of the command line program: choosing, isolation, exit codes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>
#include <filesystem>
#include <fstream>

#include "sim/app/sweeps/sweep_config.h"
#include "sim/app/sweeps/workers/isolate.h"
#include "sim/replay/replay.h"
#include "sim/store/result_store.h"

namespace orrery::app_parts_test {
namespace {

namespace fs = std::filesystem;

RunRecord record(double step, double batch, RunStatus status = RunStatus::kOk) {
  RunRecord r;
  r.status = status;
  r.metrics.push_back({"step_time_s", step, "s"});
  Configuration configuration;
  configuration.parameters.push_back({"batch.micro", "", batch, "", ""});
  r.base = std::make_shared<const Configuration>(configuration);
  return r;
}

TEST(Choose, TakesTheLargestBatchThatKeepsTheLimit) {
  const RunRecord a = record(0.01, 1), b = record(0.04, 2), c = record(0.06, 4);
  const RunRecord d = record(0.02, 8, RunStatus::kInfeasible);
  ChooseConfig choice;
  choice.maximize = "batch.micro";
  choice.at_most["step_time_s"] = config::Node::scalar("50 ms", {});
  EXPECT_EQ(choose(choice, {&a, &b, &c, &d}), &b);
  choice.at_most["step_time_s"] = config::Node::scalar("1 ms", {});
  EXPECT_EQ(choose(choice, {&a, &b, &c, &d}), nullptr);
}

TEST(Choose, AtP90WhatIsSurerComesFirst) {
  RunRecord measured = record(0.04, 1), unmeasured = record(0.03, 2);
  measured.metrics.front().interval = {0.039, 0.042};
  unmeasured.metrics.front().interval = {0.02, 0.06};
  ChooseConfig choice;
  choice.minimize = "step_time_s";
  EXPECT_EQ(choose(choice, {&measured, &unmeasured}), &unmeasured);
  choice.at = ChooseAt::kP90;
  EXPECT_EQ(choose(choice, {&measured, &unmeasured}), &measured);
  choice.at_most["step_time_s"] = config::Node::scalar("41 ms", {});
  EXPECT_EQ(choose(choice, {&measured, &unmeasured}), nullptr);
}

TEST(Choose, WithoutAWishTheFirstFeasiblePointIsShown) {
  const RunRecord a = record(1, 1, RunStatus::kInfeasible), b = record(2, 2), c = record(1, 3);
  EXPECT_EQ(choose({}, {&a, &b, &c}), &b);
}

TEST(Isolation, ReturnsWhatTheChildReturned) {
  const auto outcome = run_isolated([] { return std::string(1'000'000, 'x'); });
  ASSERT_TRUE(std::holds_alternative<std::string>(outcome));
  EXPECT_EQ(std::get<std::string>(outcome).size(), 1'000'000U);
}

TEST(Isolation, AnExceptionComesBackWithItsExitCode) {
  const auto outcome = run_isolated([]() -> std::string { throw config::ConfigError("wrong"); });
  ASSERT_TRUE(std::holds_alternative<Failure>(outcome));
  EXPECT_EQ(std::get<Failure>(outcome).code, ExitCode::kUsage);
  EXPECT_THAT(std::get<Failure>(outcome).message, testing::HasSubstr("wrong"));
}

TEST(Isolation, ACrashCostsOnePoint) {
  const auto outcome = run_isolated([]() -> std::string {
    std::signal(SIGABRT, SIG_DFL);
    std::raise(SIGABRT);
    return {};
  });
  ASSERT_TRUE(std::holds_alternative<Failure>(outcome));
  EXPECT_EQ(std::get<Failure>(outcome).code, ExitCode::kBug);
}

TEST(ExitCodes, SortErrorsAsDocumented) {
  const auto code = [](auto error) { return classify(std::make_exception_ptr(error)).code; };
  EXPECT_EQ(code(config::ConfigError("")), ExitCode::kUsage);
  EXPECT_EQ(code(UsageError("")), ExitCode::kUsage);
  EXPECT_EQ(code(DeterminismError("")), ExitCode::kDeterminism);
  EXPECT_EQ(code(ResourceError("")), ExitCode::kResource);
  EXPECT_EQ(code(std::bad_alloc()), ExitCode::kResource);
  EXPECT_EQ(code(DeadlockError("")), ExitCode::kBug);
  EXPECT_EQ(code(LinkDownError("")), ExitCode::kInfeasible);
  EXPECT_EQ(code(std::logic_error("")), ExitCode::kBug);
}

}  // namespace
}  // namespace orrery::app_parts_test
