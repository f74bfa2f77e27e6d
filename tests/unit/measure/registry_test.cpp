// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <stdexcept>

#include "host/measurement.h"
#include "host/priority.h"
#include "host/runner.h"

namespace orrery::measure::registry_test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

Measurement valid(int number, const char* name) {
  return {number, name,     "what " + std::string(name) + " is", 8, 10,
          20,     {"a_us"}, [](const Context&, Table&) {}};
}

// Registered out of order, as the linker may do it.
const Registration kThird(valid(7, "third"));
const Registration kSecond(valid(2, "beta"));
const Registration kFirst(valid(2, "alpha"));

TEST(Registry, IsInTheOrderOfNumbersThenNames) {
  std::vector<std::string> names;
  for (const Measurement& measurement : measurements()) names.push_back(measurement.name);
  EXPECT_THAT(names, ElementsAre("alpha", "beta", "third"));
}

TEST(Registry, RefusesASecondMeasurementOfOneName) {
  EXPECT_THROW(Registration(valid(9, "third")), std::logic_error);
}

TEST(Registry, RefusesWhatCannotRun) {
  Measurement nameless = valid(9, ""), unnumbered = valid(0, "x"), idle = valid(9, "x");
  Measurement endless = valid(9, "x"), empty = valid(9, "x"), twice = valid(9, "x");
  Measurement nowhere = valid(9, "in no depth");
  nowhere.quick_s = nowhere.full_s = 0;
  idle.run = nullptr;
  endless.full_s = 0;
  empty.columns = {};
  twice.columns = {"a_us", "a_us"};
  for (const Measurement& bad : {nameless, unnumbered, idle, endless, empty, twice, nowhere}) {
    EXPECT_THROW(Registration{bad}, std::logic_error);
  }
  EXPECT_EQ(measurements().size(), 3u);
}

TEST(Listing, ShowsNumberNameBudgetsAndWhatItMeasures) {
  Measurement hopper = valid(7, "mainloop");
  hopper.capability = 9;
  EXPECT_EQ(
      listing({valid(1, "chase"), hopper}),
      "  #  name       quick    full  priority  what it measures\n"
      "  1  chase       10 s    20 s         -  what chase is\n"
      "  7  mainloop    10 s    20 s         -  what mainloop is (needs compute capability 9)\n"
      "     sum         20 s    40 s         -  within budget\n");
}

TEST(Listing, ShowsTheBudgetsOfPriority) {
  Measurement only = valid(16, "sustained_decode");
  only.quick_s = only.full_s = 0;
  EXPECT_EQ(listing({valid(18, "copies"), only}),
            "  #  name               quick    full  priority  what it measures\n"
            " 18  copies              10 s    20 s      20 s  what copies is\n"
            " 16  sustained_decode       -       -      12 s  what sustained_decode is\n"
            "     sum                 10 s    20 s      32 s  within budget\n");
}

TEST(Listing, SaysWhenTheSumOfBudgetsExceedsThreeOrNineMinutes) {
  Measurement slow = valid(1, "slow");
  slow.quick_s = 169;
  slow.full_s = 519;
  EXPECT_THAT(listing({slow}), HasSubstr("within budget"));
  slow.quick_s = 170;
  EXPECT_THAT(listing({slow}), HasSubstr("over budget"));
  slow.quick_s = 10;
  slow.full_s = 520;
  EXPECT_THAT(listing({slow}), HasSubstr("over budget"));
}

TEST(Budget, IsOfTheDepth) {
  EXPECT_EQ(budget_s(valid(1, "x"), Depth::kQuick), 10);
  EXPECT_EQ(budget_s(valid(1, "x"), Depth::kFull), 20);
  EXPECT_EQ(budget_s(valid(1, "x"), Depth::kPriority), 0);
  EXPECT_EQ(budget_s(valid(9, "launch"), Depth::kPriority), priority_budget_s("launch"));
}

}  // namespace
}  // namespace orrery::measure::registry_test
