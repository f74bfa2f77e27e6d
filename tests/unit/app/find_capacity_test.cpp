// SPDX-License-Identifier: Apache-2.0
#include "sim/app/questions/find_capacity.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <fstream>

#include "sim/app/cli/find.h"
#include "sim/units/hash.h"

namespace orrery::find_capacity_test {
namespace {

using ::testing::HasSubstr;

/// Holds up to a value.
CapacityTry up_to(double most) {
  return [most](double value) {
    CapacityTrial trial{value};
    if (value > most) trial.fails = "too much";
    return trial;
  };
}

TEST(FindHighest, FindsTheEdgeFromBelowAndFromAbove) {
  for (const double start : {0.01, 1.0, 7.3, 5000.0}) {
    const CapacityAnswer answer = find_highest(up_to(7.3), start, {1e-6, 1e9}, 0.01);
    ASSERT_TRUE(answer.value) << start;
    EXPECT_LE(*answer.value, 7.3) << start;
    EXPECT_GT(*answer.value * 1.01, 7.3) << start;
    EXPECT_LT(answer.trials.size(), 30U);
  }
}

TEST(FindHighest, EndsWhereAllHoldsOrNothingDoes) {
  EXPECT_EQ(find_highest(up_to(1e18), 3, {1, 100}, 0.01).value, 100);
  EXPECT_EQ(find_highest(up_to(1e18), 300, {1, 100}, 0.01).value, 100);  // begins beyond
  const CapacityAnswer none = find_highest(up_to(-1), 3, {1, 100}, 0.01);
  EXPECT_EQ(none.value, std::nullopt);
  EXPECT_EQ(none.trials.back().value, 1);
}

TEST(FindHighest, WhatIsPrintedIsWhatWasTried) {
  const CapacityAnswer answer = find_highest(up_to(15.94), 10, {1e-6, 1e9}, 0.001);
  for (const CapacityTrial& trial : answer.trials)
    EXPECT_NEAR(trial.value * 1e3, std::round(trial.value * 1e3), 1e-6) << trial.value;
}

TEST(FindFewest, FindsTheLeastThatIsEnough) {
  for (const int enough : {1, 2, 3, 17, 64}) {
    const auto attempt = [enough](double value) {
      CapacityTrial trial{value};
      if (value < enough) trial.fails = "too few";
      return trial;
    };
    for (const int start : {1, 5, 64}) EXPECT_EQ(find_fewest(attempt, start, 64).value, enough);
    EXPECT_EQ(find_fewest(attempt, 1, enough - 1 > 0 ? enough - 1 : 1).value,
              enough == 1 ? std::optional(1.0) : std::nullopt);
  }
}

TEST(FindFewest, EndsWhereALargerFleetChangesNothing) {
  // Five clients: from five replicas on each has one of its own.
  std::vector<double> tried;
  const auto attempt = [&tried](double value) {
    tried.push_back(value);
    CapacityTrial trial{value};
    trial.ttft_p99_ms = trial.mean_e2el_ms = 100 + 10 * std::max(0.0, 5 - value);
    trial.fails = "p99 TTFT";
    return trial;
  };
  EXPECT_EQ(find_fewest(attempt, 1, 4096).value, std::nullopt);
  EXPECT_EQ(tried, (std::vector<double>{1, 2, 4, 8, 16}));
}

TEST(FindFewest, TriesFewFromAGoodStart) {
  const auto attempt = [](double value) {
    CapacityTrial trial{value};
    if (value < 51) trial.fails = "too few";
    return trial;
  };
  EXPECT_EQ(find_fewest(attempt, 53, 4096).trials.size(), 4U);  // 53, 52, 50, 51
  EXPECT_EQ(find_fewest(attempt, 49, 4096).value, 51);
}

/// A file of one experiment.
class ExperimentFile {
 public:
  explicit ExperimentFile(const std::string& workload)
      : path_(::testing::TempDir() + "capacity" + std::to_string(getpid()) + ".yaml") {
    std::ofstream(path_) << "experiment: serving\nmodel: llama_3_1_8b\nserving:\n  workload: {" +
                                workload +
                                "}\n  fleet: [{system: dgx_h100, engine: {kind: vllm}}]\n";
  }
  ~ExperimentFile() { std::remove(path_.c_str()); }
  ExperimentFile(const ExperimentFile&) = delete;
  ExperimentFile& operator=(const ExperimentFile&) = delete;
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

constexpr const char* kArrivals = "rate: 5 /s, requests: 150, input: 800, output: 60";

TEST(CapacitySearch, TheRateThatIsFoundHoldsAndATenthMoreDoesNot) {
  const ExperimentFile file(kArrivals);
  CapacitySearch search(file.path(), {"serving.slo={tpot_p99: 12 ms}"}, Capacity::kMaxRate);
  EXPECT_EQ(search.path(), "serving.workload.rate");
  EXPECT_EQ(search.bounds(), "p99 TPOT 12.0 ms");
  const CapacityAnswer answer = search.find({});
  ASSERT_TRUE(answer.value);
  const auto p99 = [&](double rate) {
    const LoadedExperiment loaded =
        load_experiment(file.path(), {"serving.workload.rate=" + std::to_string(rate) + " /s"});
    RunRecord record;
    const auto& e = loaded.as<ServingExperiment>();
    e.serve(e.fleet(), record);
    return record.find("p99_tpot_ms")->value;
  };
  EXPECT_LE(p99(*answer.value), 12);
  EXPECT_GT(p99(*answer.value * 1.1), 12);
  EXPECT_GE(search.seeds_that_hold(*answer.value), 1);
}

TEST(CapacitySearch, LengthensARunThatIsTooShortToTell) {
  // 20 requests/s for 0.5 s, each of which takes 2 s or more.
  const ExperimentFile file("rate: 20 /s, requests: 10, input: 500, output: 300");
  CapacitySearch search(file.path(), {"serving.slo={tpot_p99: 1 s}"}, Capacity::kInstances);
  const CapacityAnswer answer = search.find({});
  EXPECT_EQ(answer.value, 1);
  EXPECT_GT(answer.trials.back().requests, 100);
  EXPECT_EQ(answer.trials.back().load, "stable");
  EXPECT_NEAR(answer.trials.back().goodput, 20, 4);
}

/// Llama-3.1-70B in fp8 on DGX H100, tp 8: by hand, a replica in steady state answers 4.0 to 4.1
/// requests/s of 4,096 and 1,024 tokens, so that 200 requests/s need 50 to 54.
TEST(CapacitySearch, TwoHundredRequestsASecondOfA70BModelNeedFiftyToFiftyFourServers) {
  CapacitySearch search(std::string(ORRERY_SOURCE_DIR) + "/configs/experiments/fleet_llama70b.yaml",
                        {}, Capacity::kInstances);
  const CapacityAnswer answer = search.find({});
  ASSERT_TRUE(answer.value);
  EXPECT_GE(*answer.value, 50);
  EXPECT_LE(*answer.value, 54);
}

/// The fewest replicas for a rate, and the rates that one more and two fewer hold.
TEST(CapacitySearch, InstancesAgreeWithMaxRateWithinOneReplica) {
  std::uint64_t state = 40;
  for (int drawn = 0; drawn < 20; ++drawn) {
    const double rate = std::round(5 + 60 * next_uniform(state));
    const std::string lengths =
        "input: " + std::to_string(100 + static_cast<int>(1500 * next_uniform(state))) +
        ", output: " + std::to_string(20 + static_cast<int>(180 * next_uniform(state)));
    const ExperimentFile file("rate: " + std::to_string(rate) + " /s, requests: 200, " + lengths);
    const std::string bounds =
        "serving.slo={ttft_p99: " + std::to_string(0.2 + next_uniform(state)) + " s}";
    const std::string few = "serving.fleet.0.engine.max_num_seqs=8";
    SCOPED_TRACE(lengths + ", " + std::to_string(rate) + " /s, " + bounds);
    const auto fewest =
        CapacitySearch(file.path(), {bounds, few}, Capacity::kInstances).find({}).value;
    if (!fewest) continue;
    const auto most_with = [&](double replicas) {
      return CapacitySearch(file.path(),
                            {bounds, few, "serving.fleet.0.replicas=" + std::to_string(replicas)},
                            Capacity::kMaxRate)
          .find({})
          .value.value_or(0);
    };
    EXPECT_GE(most_with(*fewest + 1) * 1.01, rate);
    if (*fewest > 2) {
      EXPECT_LT(most_with(*fewest - 2), rate);
    }
  }
}

TEST(CapacitySearch, RefusesWhatHasNoRateOrNoBounds) {
  const auto fault = [](const std::string& workload, const std::vector<std::string>& set) {
    const ExperimentFile file(workload);
    try {
      const CapacitySearch search(file.path(), set, Capacity::kMaxRate);
    } catch (const UsageError& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  EXPECT_THAT(fault(kArrivals, {}), HasSubstr("needs bounds"));
  EXPECT_THAT(fault("concurrency: 4", {"serving.slo={ttft_p99: 1 s}"}),
              HasSubstr("clients that wait for their answers have none"));
}

TEST(Find, SaysWhatIsWrongAndWhatCannotBe) {
  const ExperimentFile file(kArrivals);
  EXPECT_THROW(find_answer(file.path(), {}, "max_rat", "ttft_p99=1s"), UsageError);
  EXPECT_THROW(find_answer(file.path(), {}, "max_rate", "ttft_99=1s"), config::ConfigError);
  testing::internal::CaptureStderr();
  const Answer found = find_answer(file.path(), {}, "max_rate", " ttft_p99=2us, tpot_p99=1s");
  EXPECT_EQ(found.code, ExitCode::kInfeasible);
  testing::internal::GetCapturedStderr();
  EXPECT_THAT(
      std::get<std::string>(found.parts.back()),
      AllOf(HasSubstr("nothing that was tried keeps p99 TTFT 2.00 us, p99 TPOT 1.00 s: at "),
            HasSubstr(" /s not p99 TTFT")));
}

}  // namespace
}  // namespace orrery::find_capacity_test
