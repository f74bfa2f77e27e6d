// SPDX-License-Identifier: Apache-2.0
#include "host/options.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace orrery::measure::options_test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

std::string error_of(const std::vector<std::string>& arguments) {
  try {
    parse_options(arguments);
  } catch (const UsageError& error) {
    return error.what();
  }
  return "no error";
}

Measurement named(int number, const char* name) {
  Measurement measurement;
  measurement.number = number;
  measurement.name = name;
  measurement.quick_s = measurement.full_s = 1;
  return measurement;
}

/// Four, and a fifth that only --priority measures.
std::vector<Measurement> five() {
  std::vector<Measurement> all = {named(1, "pointer_chase"), named(2, "l2_read"), named(13, "gemm"),
                                  named(13, "gemm_steady"), named(16, "sustained_decode")};
  all.back().quick_s = all.back().full_s = 0;
  return all;
}

std::vector<std::string> names(const std::string& list) {
  const std::vector<Measurement> all = five();
  std::vector<std::string> result;
  for (const Measurement* measurement : select(list, all)) result.push_back(measurement->name);
  return result;
}

std::string select_error(const std::string& list) {
  const std::vector<Measurement> all = five();
  try {
    select(list, all);
  } catch (const UsageError& error) {
    return error.what();
  }
  return "no error";
}

TEST(Options, WithoutArgumentsMeasureAllQuickly) {
  const Options options = parse_options({});
  EXPECT_EQ(options.action, Action::kRun);
  EXPECT_EQ(options.depth, Depth::kQuick);
  EXPECT_EQ(options.kernels, "");
  EXPECT_EQ(options.out, "measurements");
  EXPECT_EQ(options.device, 0);
  EXPECT_FALSE(options.seed.has_value());
}

TEST(Options, TakeTheirValueAsNextWordOrAfterAnEqualsSign) {
  const Options options = parse_options({"--full", "--kernels", "1-6,gemm", "--out=a/b", "--device",
                                         "3", "--seed=18446744073709551615", "--system", "mine"});
  EXPECT_EQ(options.depth, Depth::kFull);
  EXPECT_EQ(options.kernels, "1-6,gemm");
  EXPECT_EQ(options.out, "a/b");
  EXPECT_EQ(options.device, 3);
  EXPECT_EQ(options.seed, 18446744073709551615u);
  EXPECT_EQ(options.system, "mine");
}

TEST(Options, PriorityIsADepthOfItsOwn) {
  const Options options = parse_options({"--priority", "--out", "--full", "--seed=7"});
  EXPECT_EQ(options.depth, Depth::kPriority);
  EXPECT_EQ(options.out, "--full");
  EXPECT_THAT(help_text(), HasSubstr("--priority"));
}

TEST(Options, PriorityExcludesOtherDepthsAndLists) {
  EXPECT_EQ(error_of({"--priority", "--full"}),
            "--priority and --full exclude each other; give one");
  EXPECT_EQ(error_of({"--quick", "--priority"}),
            "--priority and --quick exclude each other; give one");
  EXPECT_EQ(error_of({"--kernels", "gemm,15", "--priority"}),
            "--priority has a list of kernels of its own; did you mean '--full --kernels "
            "gemm,15'?");
  EXPECT_THAT(error_of({"--prioritiy"}), HasSubstr("did you mean '--priority'?"));
}

TEST(Options, NameTheActionsThatNeedNoGpu) {
  EXPECT_EQ(parse_options({"--list"}).action, Action::kList);
  EXPECT_EQ(parse_options({"--version"}).action, Action::kVersion);
  EXPECT_EQ(parse_options({"--help"}).action, Action::kHelp);
}

TEST(Options, AWrongOneSuggestsTheNearest) {
  EXPECT_EQ(error_of({"--kernel", "3"}),
            "there is no option '--kernel'; did you mean '--kernels'?");
  EXPECT_THAT(error_of({"--ful"}), HasSubstr("'--full'"));
  EXPECT_THAT(error_of({"xyzzy-plugh"}), Not(HasSubstr("did you mean")));
}

TEST(Options, RefuseAValueThatIsNoNumber) {
  EXPECT_THAT(error_of({"--device", "one"}), HasSubstr("whole number"));
  EXPECT_THAT(error_of({"--device", "-1"}), HasSubstr("whole number"));
  EXPECT_THAT(error_of({"--seed", "12x"}), HasSubstr("whole number"));
  EXPECT_THAT(error_of({"--seed", "99999999999999999999"}), HasSubstr("whole number"));
}

TEST(Options, RefuseAMissingValueAndAValueTooMany) {
  EXPECT_EQ(error_of({"--out"}), "--out needs a value");
  EXPECT_EQ(error_of({"--out="}), "--out needs a value");
  EXPECT_THAT(error_of({"--full=yes"}), HasSubstr("there is no option"));
}

TEST(Select, TakesNumbersRangesAndNames) {
  EXPECT_THAT(names("1"), ElementsAre("pointer_chase"));
  EXPECT_THAT(names("1-2"), ElementsAre("pointer_chase", "l2_read"));
  EXPECT_THAT(names("gemm"), ElementsAre("gemm"));
  EXPECT_THAT(names("2-12"), ElementsAre("l2_read"));
}

TEST(Select, ANumberTakesEveryMeasurementThatHasIt) {
  EXPECT_THAT(names("13"), ElementsAre("gemm", "gemm_steady"));
}

TEST(Select, KeepsTheOrderOfTheRegistryAndRepeatsNothing) {
  EXPECT_THAT(names("gemm,1,1-2"), ElementsAre("pointer_chase", "l2_read", "gemm"));
}

TEST(Select, AnEmptyListTakesAll) { EXPECT_EQ(names("").size(), 4u); }

TEST(Select, LeavesOutWhatOnlyPriorityMeasures) {
  EXPECT_THAT(names("13-16"), ElementsAre("gemm", "gemm_steady"));
  EXPECT_EQ(select_error("sustained_decode"), "only --priority measures 'sustained_decode'");
}

TEST(Select, RefusesWhatIsNotThere) {
  EXPECT_THAT(select_error("l2_reed"), HasSubstr("did you mean 'l2_read'?"));
  EXPECT_THAT(select_error("3-12"), HasSubstr("no measurement '3-12'"));
  EXPECT_THAT(select_error("6-1"), HasSubstr("no measurement '6-1'"));
  EXPECT_THAT(select_error("1,,2"), HasSubstr("no measurement ''"));
}

TEST(Version, IsThatOfTheProject) {
  EXPECT_THAT(program_version(), testing::MatchesRegex("[0-9]+\\.[0-9]+\\.[0-9]+"));
}

}  // namespace
}  // namespace orrery::measure::options_test
