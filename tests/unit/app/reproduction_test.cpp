// SPDX-License-Identifier: Apache-2.0
#include "sim/app/questions/points/export_points.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <fstream>

#include "sim/app/experiments/core/experiment.h"
#include "sim/app/experiments/core/simulate.h"
#include "sim/app/questions/points/attribution.h"
#include "tests/unit/results/example.h"

namespace orrery::reproduction_test {
namespace {

RunRecord record_of(const LoadedExperiment& loaded) {
  RunRecord record;
  record.identity = loaded.identity;
  record.experiment = loaded.experiment->kind;
  record.base = configuration_of(loaded);
  return record;
}

TEST(Reproduction, EveryShippedExperimentIsTheSamePointAgain) {
  const TemporaryFolder folder;
  int count = 0;
  const std::filesystem::path shipped =
      std::filesystem::path(ORRERY_SOURCE_DIR) / "configs" / "experiments";
  for (const auto& entry : std::filesystem::directory_iterator(shipped)) {
    if (entry.path().extension() != ".yaml") continue;
    const LoadedExperiment loaded = load_experiment(entry.path().string(), {});
    const RunRecord record = record_of(loaded);
    const std::string file = (folder / "again.yaml").string();
    std::ofstream(file) << reproduction(record);
    EXPECT_EQ(obstacle_to(record, file), "") << entry.path() << "\n" << reproduction(record);
    ++count;
  }
  EXPECT_GT(count, 30);
}

TEST(Reproduction, SaysWhatIsInTheWay) {
  const TemporaryFolder folder;
  const std::string file = (folder / "again.yaml").string();
  RunRecord record = record_of(
      load_experiment(ORRERY_SOURCE_DIR "/configs/experiments/selene_22b_layer.yaml", {}));
  std::ofstream(file) << reproduction(record);
  record.identity = "of another engine";
  EXPECT_NE(obstacle_to(record, file), "");
  record.base = nullptr;
  EXPECT_THROW(reproduction(record), std::exception);
}

TEST(Attribution, PartsAndClassesAddUpWhateverTheyAre) {
  std::uint64_t seed = 1;
  for (int round = 0; round < 100; ++round) {
    RunRecord a = example_record("a", 0.1 + 0.001 * round), b = example_record("b", 0.3);
    for (RunRecord* record : {&a, &b}) {
      for (const char* part : {"compute_s", "idle_s", "bubble_s"}) {
        const std::string name = std::string("breakdown.") + part;
        record->metrics.erase(
            std::remove_if(record->metrics.begin(), record->metrics.end(),
                           [&](const Metric& metric) { return metric.name == name; }),
            record->metrics.end());
        seed = seed * 6364136223846793005ULL + 1442695040888963407ULL;
        record->metrics.push_back({name, 1e-3 * static_cast<double>(seed >> 50), "s"});
      }
      record->classes.push_back({round % 2 == 0 ? "gemm" : "only here", 1, 0.01 * round, 0, 0});
    }
    const std::vector<Attribution> all = attributions(a, b);
    ASSERT_EQ(all.size(), 2U);
    for (const Attribution& attribution : all) {
      std::int64_t of_a = 0, of_b = 0;
      for (const AttributedPart& part : attribution.parts) {
        of_a += part.a_ps;
        of_b += part.b_ps;
      }
      EXPECT_EQ(of_a, attribution.total.a_ps);
      EXPECT_EQ(of_b, attribution.total.b_ps);
    }
    EXPECT_EQ(all[0].total.a_ps, std::llround(a.find("step_time_s")->value * 1e12));
  }
}

}  // namespace
}  // namespace orrery::reproduction_test
