// SPDX-License-Identifier: Apache-2.0
// How a sweep tells how it comes along.
#include "sim/app/cli/sweep_progress.h"

#include <gmock/gmock.h>

#include <nlohmann/json.hpp>

namespace orrery::sweep_progress_test {
namespace {

SweepTally half_way() {
  SweepTally tally;
  tally.places = 1000;
  tally.done = 500;
  tally.simulated = 380;
  tally.from_store = 20;
  tally.excluded = 100;
  tally.failed = 2;
  tally.best = BestResult{"step_time_s", false, 0.0123, "s", "NVL72, tp 8", "abc"};
  return tally;
}

TEST(SweepProgress, ALineSaysHowFarHowFastHowLongAndWhatIsBest) {
  EXPECT_EQ(progress_text(half_way(), {4, 95, 130}, false),
            "points: 500 of 1000, 95/s, 2.2 min left, 20 from the store, 100 excluded, 2 FAILED, "
            "best step_time_s 12.3 ms (NVL72, tp 8)");
  EXPECT_EQ(progress_text({}, {}, false), "points: 0 of 0");
}

TEST(SweepProgress, ABarIsAsFullAsThePlanIsDone) {
  SweepTally tally = half_way();
  EXPECT_THAT(progress_text(tally, {}, true), testing::StartsWith("[==========>         ] 500 of"));
  tally.done = tally.places;
  EXPECT_THAT(progress_text(tally, {}, true),
              testing::StartsWith("[====================] 1000 of"));
}

TEST(SweepProgress, AnObjectOfOneLineHasTheSame) {
  const std::string line = progress_json(half_way(), {4, 95, 130}, false);
  EXPECT_EQ(line.find('\n'), std::string::npos);
  const auto json = nlohmann::json::parse(line);
  EXPECT_EQ(json.at("schema"), "orrery.progress/1");
  EXPECT_EQ(json.at("event"), "progress");
  EXPECT_EQ(json.at("done"), 500);
  EXPECT_EQ(json.at("failed"), 2);
  EXPECT_EQ(json.at("left_s"), 130);
  EXPECT_EQ(json.at("best").at("better"), "least");
  EXPECT_EQ(json.at("best").at("value"), 0.0123);
  EXPECT_TRUE(nlohmann::json::parse(progress_json({}, {}, true)).at("best").is_null());
  EXPECT_TRUE(nlohmann::json::parse(progress_json({}, {}, true)).at("left_s").is_null());
}

RunRecord result_of(double time, RunStatus status = RunStatus::kOk) {
  RunRecord record;
  record.identity = std::to_string(time);
  record.status = status;
  record.metrics = {{"step_time_s", time, "s", {{time - 1, time + 1}}}};
  return record;
}

TEST(BestSoFar, FollowsTheFirstObjectiveOfTheFirstCase) {
  SweepConfig config;
  config.objectives = {{"", "step_time_s.p90"}, {"step_time_s", ""}};
  config.cases.emplace_back();
  BestSoFar best(config);
  const auto name = [] { return std::string("tp 8"); };
  EXPECT_FALSE(best.result().has_value());
  best.look_at(result_of(3), 0, name);
  best.look_at(result_of(2), 0, name);
  best.look_at(result_of(4), 0, name);
  best.look_at(result_of(1, RunStatus::kInfeasible), 0, name);
  best.look_at(RunRecord{}, 0, name);
  ASSERT_TRUE(best.result().has_value());
  EXPECT_EQ(best.result()->value, 3);
  EXPECT_EQ(best.result()->unit, "s");
  EXPECT_EQ(best.result()->name, "tp 8");
  EXPECT_FALSE(best.result()->most);
}

TEST(BestSoFar, IsWhatChooseOptimisesWhereNothingElseIsSought) {
  SweepConfig config;
  config.cases.emplace_back();
  config.cases.front().choose.maximize = "step_time_s";
  BestSoFar best(config);
  for (const double time : {3.0, 5.0, 4.0}) best.look_at(result_of(time), 0, [] { return ""; });
  EXPECT_EQ(best.result()->value, 5);
}

// The fastest point may be one that the table does not choose.
TEST(BestSoFar, KeepsTheLimitsOfThePointsCase) {
  SweepConfig config;
  config.cases.resize(2);
  config.cases[0].choose.maximize = "step_time_s";
  config.cases[0].choose.at_most["step_time_s"] = config::Node::scalar("4 s", {});
  BestSoFar best(config);
  best.look_at(result_of(5), 0, [] { return "beyond the limit"; });
  EXPECT_FALSE(best.result().has_value());
  best.look_at(result_of(3), 0, [] { return "within"; });
  EXPECT_EQ(best.result()->value, 3);
  best.look_at(result_of(6), 1, [] { return "of a case without limits"; });
  EXPECT_EQ(best.result()->value, 6);
}

}  // namespace
}  // namespace orrery::sweep_progress_test
