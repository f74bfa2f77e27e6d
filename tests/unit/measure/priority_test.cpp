// SPDX-License-Identifier: Apache-2.0
#include "host/priority.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

#include "host/priority_shapes.h"
#include "host/runner.h"
#include "host/table.h"

namespace orrery::measure::priority_test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

void one_row(const Context& context, Table& table) {
  table.add_row({std::string(name_of(context.depth))});
}

/// A measurement for every part of --priority in the order of their names, and one more.
std::vector<Measurement> registered() {
  std::vector<Measurement> all = {{1, "pointer_chase", "", 8, 5, 5, {"depth"}, one_row}};
  for (const PriorityPart& part : priority_parts()) {
    all.push_back({2, part.name, "", 8, 5, 5, {"depth"}, one_row});
  }
  std::sort(all.begin(), all.end(),
            [](const Measurement& a, const Measurement& b) { return a.name < b.name; });
  return all;
}

std::vector<std::string> names_of(const std::vector<const Measurement*>& measurements) {
  std::vector<std::string> names;
  for (const Measurement* measurement : measurements) names.push_back(measurement->name);
  return names;
}

TEST(Priority, MeasuresModelsThenLaunchesThenPowerThenCopies) {
  EXPECT_THAT(
      names_of(prioritised(registered())),
      ElementsAre("gemm", "grouped_gemm", "batched_gemm", "attention_prefill", "attention_decode",
                  "launch", "power", "sustained_decode", "sustained_prefill", "copies"));
}

TEST(Priority, BudgetsWithTheStartStayUnderTenMinutes) {
  double sum_s = 0;
  for (const PriorityPart& part : priority_parts()) {
    EXPECT_GT(part.budget_s, 0) << part.name;
    sum_s += part.budget_s;
  }
  EXPECT_LT(sum_s, kPriorityLimit_s);
  EXPECT_LT(kPriorityLimit_s, 600);
}

TEST(Priority, BudgetsOfSustainedKernelsLeaveTimeForTheirStart) {
  constexpr double kStart_s = 3;  // CUDA, and 12 GiB of random numbers
  EXPECT_GE(priority_budget_s("sustained_decode"), kSustainSeconds + kStart_s);
  EXPECT_GE(priority_budget_s("sustained_prefill"), kSustainSeconds + kStart_s);
}

TEST(Priority, OtherMeasurementsHaveNoBudget) { EXPECT_EQ(priority_budget_s("pointer_chase"), 0); }

TEST(Priority, RefusesToRunWithoutOneOfItsMeasurements) {
  std::vector<Measurement> all = registered();
  std::erase_if(all, [](const Measurement& measurement) { return measurement.name == "launch"; });
  try {
    prioritised(all);
    FAIL() << "no error";
  } catch (const std::logic_error& error) {
    EXPECT_STREQ(error.what(), "--priority: there is no measurement 'launch'");
  }
}

TEST(Priority, TheListingNamesTheOrder) {
  EXPECT_EQ(priority_listing(registered()),
            "--priority measures, in this order: gemm, grouped_gemm, batched_gemm, "
            "attention_prefill, attention_decode, launch, power, sustained_decode, "
            "sustained_prefill, copies\n");
}

class PriorityRun : public testing::Test {
 protected:
  PriorityRun() {
    std::string pattern = (std::filesystem::temp_directory_path() / "priority_XXXXXX").string();
    folder_ = mkdtemp(pattern.data());
  }
  ~PriorityRun() override { std::filesystem::remove_all(folder_); }

  std::vector<Outcome> run(const std::vector<Measurement>& all) {
    measure::Run run;
    run.info.depth = Depth::kPriority;
    run.out = folder_;
    run.open_device = [] {
      Context context;
      context.device.major = 9;
      return context;
    };
    run.device_section = "device: {}\n";
    run.log = &log_;
    return run_all(prioritised(all), run);
  }

  std::string text_of(const std::string& name) const {
    std::ifstream file(folder_ / name);
    return {std::istreambuf_iterator<char>(file), {}};
  }

  std::filesystem::path folder_;
  std::ostringstream log_;
};

TEST_F(PriorityRun, RunsEveryPartAtItsDepthInItsOrder) {
  const std::vector<Outcome> outcomes = run(registered());
  ASSERT_EQ(outcomes.size(), priority_parts().size());
  for (std::size_t i = 0; i < outcomes.size(); ++i) {
    EXPECT_EQ(outcomes[i].name, priority_parts()[i].name);
    EXPECT_EQ(outcomes[i].status, Status::kOk);
    EXPECT_EQ(text_of(outcomes[i].name + ".csv"), "depth\npriority\n");
  }
  EXPECT_THAT(text_of("environment.yaml"), HasSubstr("depth: priority\n"));
  EXPECT_THAT(log_.str(), HasSubstr("[1/10] gemm: 1 rows"));
}

}  // namespace
}  // namespace orrery::measure::priority_test
