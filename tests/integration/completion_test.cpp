// SPDX-License-Identifier: Apache-2.0
// What shells offer while a command is typed.
#include <gmock/gmock.h>

#include <string>

#include "tests/integration/program.h"

namespace completion_test {
namespace {

using integration::orrery;
using integration::shell;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

std::string offered(const std::string& words) {
  const auto run = orrery("completion words -- " + words);
  EXPECT_EQ(run.code, 0) << run.out;
  return run.out;
}

TEST(Completion, VerbsThenWhatIsInAGroup) {
  EXPECT_THAT(offered("''"), AllOf(HasSubstr("run\n"), HasSubstr("sweep\n")));
  EXPECT_EQ(offered("descr"), "describe\n");
  EXPECT_THAT(offered("validate ''"), AllOf(HasSubstr("operators\n"), Not(HasSubstr("validate"))));
}

TEST(Completion, OptionsAndTheWordsOfAChoice) {
  EXPECT_EQ(offered("run x.yaml --tr"), "--trace\n");
  EXPECT_EQ(offered("validate operators --fidelity c"), "closed\n");
  EXPECT_EQ(offered("run x.yaml --trace ''"), "") << "any file";
}

TEST(Completion, WhatThereIsToDescribe) {
  EXPECT_THAT(offered("describe ''"), HasSubstr("systems\n"));
  EXPECT_EQ(offered("describe system gb300"), "gb300_nvl72\n");
  EXPECT_EQ(offered("describe nothing ''"), "");
  EXPECT_EQ(offered("schema publ"), "published\n");
}

TEST(Completion, KeysOfSetAndWhatTheyMayBe) {
  EXPECT_EQ(offered("run x.yaml --set parallel.vp"), "parallel.vpp=\n");
  EXPECT_EQ(offered("run x.yaml --set system=dgx_a100"), "system=dgx_a100\nsystem=dgx_a100_40\n");
  EXPECT_EQ(offered("run x.yaml --set fidelity=t"), "fidelity=tile\n");
}

TEST(Completion, ScriptOfBashOffersTheSame) {
  const std::string type =
      "PATH=$(dirname " ORRERY_BINARY
      "):$PATH; eval \"$(orrery completion bash)\"; "
      "COMP_WORDS=(orrery run x.yaml --set system = gb300); COMP_CWORD=6; _orrery; "
      "echo \"${COMPREPLY[*]}\"";
  EXPECT_EQ(shell("bash -c '" + type + "'").out, "gb300_nvl72\n");
}

TEST(Completion, AShellThatIsNotKnownIsAMistake) {
  const auto run = orrery("completion fish");
  EXPECT_EQ(run.code, 2);
  EXPECT_THAT(run.out, HasSubstr("there are: bash, zsh, words"));
}

}  // namespace
}  // namespace completion_test
