// SPDX-License-Identifier: Apache-2.0
// Plans that cannot be, as a user sees them; the corpus in tests/unit/app/bad_inputs has the rest.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/integration/program.h"

namespace plan_errors_test {
namespace {

using namespace integration;
using testing::HasSubstr;

class PlanErrors : public InFolder {
 protected:
  std::string decode(const std::string& plan) const {
    return write("plan.yaml",
                 "experiment: inference\nsystem: gb200_nvl72\nmodel: deepseek_r1\nphase: decode\n"
                 "kv_length: 1024\nbatch: {micro: 1}\nprecision: fp8\nparallel: " +
                     plan + "\n");
  }
};

TEST_F(PlanErrors, RunAndCheckPointAtTheLine) {
  const std::string file = decode("{tp: 7}");
  for (const char* verb : {"run ", "check "}) {
    const Outcome told = orrery(verb + file);
    EXPECT_EQ(told.code, 2) << told.out;
    EXPECT_THAT(told.out,
                HasSubstr(file + ":8:16: error: 128 attention heads do not divide by tp = 7; "
                                 "did you mean '8'?\n    8 | parallel: {tp: 7}\n"
                                 "      |                ^\n"));
  }
}

TEST_F(PlanErrors, PointAtTheArgumentThatSaysIt) {
  const Outcome told = orrery("run " + decode("{tp: 8}") + " --set parallel.tp=7");
  EXPECT_EQ(told.code, 2);
  EXPECT_THAT(told.out, HasSubstr("--set parallel.tp=7: error: 128 attention heads"));
}

TEST_F(PlanErrors, AMissingBaseIsToldWhereItIsNamed) {
  const std::string file = write("base.yaml", "extends: nofile.yaml\n");
  const Outcome told = orrery("check " + file);
  EXPECT_EQ(told.code, 2);
  EXPECT_THAT(told.out, HasSubstr(file + ":1:10: error: no such file 'nofile.yaml'"));
}

TEST_F(PlanErrors, APlanWhoseRanksAllHoldEveryExpertIsToldHowManyWould) {
  const Outcome told = orrery("run " + decode("{dp: 8, etp: 1}"));
  EXPECT_EQ(told.code, 5) << told.out;
  EXPECT_THAT(told.out, HasSubstr("every rank holds all 256 experts; ep: 8 holds it: "));
}

TEST_F(PlanErrors, SplitExpertsGatherTheTokensThatSequenceParallelRanksShare) {
  const Outcome told =
      orrery("run " + decode("{tp: 8, sp: true, dp: 1, ep: 4, etp: 2}") + " --json", false);
  EXPECT_EQ(told.code, 0);
  EXPECT_THAT(told.out, HasSubstr("all_gather etp"));
}

}  // namespace
}  // namespace plan_errors_test
