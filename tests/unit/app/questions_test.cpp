// SPDX-License-Identifier: Apache-2.0
#include "sim/app/questions/base/verb.h"

#include <gtest/gtest.h>

#include "sim/app/cli/command_line.h"

namespace orrery::questions_test {
namespace {

struct Sum {
  std::vector<std::string> terms;
  void take(Options& options) { options.positionals("TERM", terms, "numbers"); }
  Answer answer() const {
    int sum = 0;
    for (const std::string& term : terms) sum += std::stoi(term);
    return {.parts = {"the sum is " + std::to_string(sum) + "\n"},
            .json = sum,
            .code = sum == 0 ? ExitCode::kPartial : ExitCode::kOk};
  }
};

const RegisterQuestion<Sum> registered_sum("test-sum", "the sum of numbers");

TEST(Questions, OneThatIsRegisteredIsAVerbWithTextAndJson) {
  testing::internal::CaptureStdout();
  EXPECT_EQ(run_command_line({"test-sum", "2", "40"}), ExitCode::kOk);
  EXPECT_EQ(testing::internal::GetCapturedStdout(), "the sum is 42\n");
  testing::internal::CaptureStdout();
  EXPECT_EQ(run_command_line({"test-sum", "--json", "2", "40"}), ExitCode::kOk);
  EXPECT_EQ(testing::internal::GetCapturedStdout(), "42\n");
}

TEST(Questions, TheExitCodeIsThatOfTheAnswer) {
  testing::internal::CaptureStdout();
  EXPECT_EQ(run_command_line({"test-sum", "0"}), ExitCode::kPartial);
  EXPECT_EQ(testing::internal::GetCapturedStdout(), "the sum is 0\n");
}

TEST(Questions, TwoOfOneNameAreRefused) {
  EXPECT_THROW(VerbRegistry::Register("describe", "", {}), std::logic_error);
}

}  // namespace
}  // namespace orrery::questions_test
