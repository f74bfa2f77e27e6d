// SPDX-License-Identifier: Apache-2.0
// What replayed graphs have as steps do: kernels beside transfers, clocks, energy and intervals.
#include <gtest/gtest.h>

#include <cstdio>
#include <fstream>
#include <string>
#include <vector>

#include "tests/unit/app/trace_file.h"

namespace orrery::replay_power_test {
namespace {

using test::compute;
using test::run;
using test::TraceFile;
using test::value;

/// What a file tells of a product of 8192 x 8192 x 8192 in bf16.
const std::string kProduct =
    R"(, "orrery.class": "gemm", "orrery.kernel": "precision=bf16 batch=1 m=8192 n=8192 k=8192 )"
    R"(matrix_flops=1099511627776 read=268435456 written=134217728")";

/// The product, recorded as 2 ms, and a reduction of 1 GB over eight ranks beside it.
class Overlap {
 public:
  Overlap()
      : trace_(compute(1, "gemm", 2000, "", kProduct) +
               R"(,{"Id": 2, "Name": "ar", "NodeType": 7, "comm_type": 0, "comm_size": 1000000000,
                    "pg_name": "g"})") {
    std::ofstream(groups_) << R"({"g": [0, 1, 2, 3, 4, 5, 6, 7]})";
  }
  ~Overlap() { std::remove(groups_.c_str()); }
  Overlap(const Overlap&) = delete;
  Overlap& operator=(const Overlap&) = delete;

  RunRecord run(const std::vector<std::string>& set) const {
    return test::run("experiment: replay\nsystem: dgx_h100\ngraph: {path: " + trace_.path() +
                         ", groups: " + groups_ + "}\n",
                     set);
  }

 private:
  std::string groups_ = test::kTemp + "replay_overlap.json";
  TraceFile trace_;
};

TEST(Replay, TransfersSlowKernelsThatTheModelPrices) {
  const Overlap graph;
  const RunRecord together = graph.run({"durations=model"});
  const RunRecord apart = graph.run({"durations=model", "contention.transfers=false"});
  EXPECT_EQ(value(apart, "breakdown.contention_s"), 0);
  EXPECT_GT(value(together, "breakdown.contention_s"), 0);
  EXPECT_GE(value(together, "time_s"), value(apart, "time_s"));
  EXPECT_EQ(value(graph.run({}), "breakdown.contention_s"), 0) << "2 ms have it in them";
  EXPECT_NEAR(value(graph.run({}), "breakdown.compute_s"), 2e-3, 1e-15);
}

TEST(Replay, TheCapSlowsKernelsThatTheModelPrices) {
  const Overlap graph;
  const std::string cap = "system.accelerator.power.limit=350 W";
  const RunRecord whole = graph.run({"durations=model"});
  const RunRecord capped = graph.run({"durations=model", cap});
  EXPECT_GT(value(capped, "breakdown.compute_s"), value(whole, "breakdown.compute_s"));
  EXPECT_LT(value(capped, "clock_hz"), value(whole, "clock_hz"));
  EXPECT_LE(value(capped, "window_power_w"), 350);
  const RunRecord recorded = graph.run({cap});
  EXPECT_NEAR(value(recorded, "breakdown.compute_s"), 2e-3, 1e-15);
  EXPECT_EQ(recorded.find("clock_hz"), nullptr) << "no file tells it";
}

// Work that would draw more than the cap in the time that it took has kept the cap of its device.
TEST(Replay, TheHeaviestWindowOfRecordedKernelsDrawsAtLeastTheirMean) {
  const TraceFile product(compute(1, "gemm", 1000, "", kProduct));
  const RunRecord record = run(product.experiment());
  EXPECT_GT(value(record, "average_power_w"), 500);
  EXPECT_GE(value(record, "window_power_w"), value(record, "average_power_w") * (1 - 1e-12));
}

// In the same time the product costs what its work does; nothing is known of the other kernel.
TEST(Replay, TheWorkThatFilesTellCostsEnergy) {
  const TraceFile product(compute(1, "gemm", 2000, "", kProduct));
  const TraceFile unknown(compute(1, "gemm", 2000));
  const RunRecord told = run(product.experiment("carbon_intensity: 360 gCO2/kWh\n"));
  const RunRecord untold = run(unknown.experiment());
  EXPECT_EQ(value(told, "told_share"), 1);
  EXPECT_EQ(value(untold, "told_share"), 0);
  EXPECT_GT(value(told, "energy_j"), 1.5 * value(untold, "energy_j"));
  EXPECT_LE(value(told, "average_power_w"), 700) << "the cap";
  EXPECT_NEAR(value(told, "energy_j"), value(told, "average_power_w") * 2e-3, 1e-9);
  // 360 g a kWh are 1e-4 g a joule.
  EXPECT_NEAR(value(told, "co2_per_step"), value(told, "system_power_w") * 2e-3 * 1e-4, 1e-9);
}

TEST(Replay, TwiceAsMuchOfAllTakesTwiceTheTimeAndEnergy) {
  const Overlap graph;
  for (const char* durations : {"durations=recorded", "durations=model"}) {
    const RunRecord once = graph.run({durations});
    const RunRecord twice = graph.run({durations, "scale.all=2"});
    EXPECT_NEAR(value(twice, "time_s") / value(once, "time_s"), 2, 1e-6) << durations;
    EXPECT_NEAR(value(twice, "energy_j") / value(once, "energy_j"), 2, 1e-3) << durations;
  }
}

TEST(Replay, OnlyTimesOfModelsHaveIntervals) {
  const Overlap graph;
  const RunRecord model = graph.run({"durations=model"});
  for (const char* name : {"time_s", "energy_j", "breakdown.compute_s"}) {
    const Metric& metric = *model.find(name);
    ASSERT_TRUE(metric.interval.has_value()) << name;
    EXPECT_LT(metric.interval->first, metric.interval->second) << name;
    EXPECT_LE(metric.interval->first, metric.value) << name;
    EXPECT_GE(metric.interval->second, metric.value) << name;
  }
  const TraceFile recorded(compute(1, "gemm", 100));
  EXPECT_FALSE(run(recorded.experiment()).find("time_s")->interval.has_value());
}

}  // namespace
}  // namespace orrery::replay_power_test
