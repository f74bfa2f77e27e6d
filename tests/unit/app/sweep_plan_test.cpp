// SPDX-License-Identifier: Apache-2.0
// Plans of sweeps: what stands at each place, without any of it being kept.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cmath>
#include <map>
#include <random>
#include <set>

#include "sim/app/experiments/steps/model_experiment.h"
#include "sim/app/sweeps/plan/plan_counts.h"
#include "sim/app/sweeps/plan/plan_cursor.h"
#include "sim/app/sweeps/plan/random_axis.h"
#include "tests/unit/app/sweep_file.h"

namespace orrery::sweep_plan_test {
namespace {

using testing::HasSubstr;

const std::string kDecode =
    "{experiment: inference, system: dgx_h100, model: llama_3_1_8b, phase: decode, kv_length: "
    "1024, "
    "parallel: {tp: 8}, batch: {micro: 4}, precision: bf16}";

std::string case_of(const std::string& rest) {
  return "sweep: plan\ncases:\n  - name: a\n    base: " + kDecode + "\n" + rest;
}

/// What tells the points of a plan from each other, in order.
std::vector<std::string> points_of(const std::string& text) {
  const SweepFile file(text);
  const Sweep sweep = load_sweep(file.path());
  std::vector<std::string> points;
  std::uint64_t next = 0;
  for (PlanCursor cursor(sweep); !cursor.at_end(); cursor.next()) {
    EXPECT_EQ(cursor.place(), next) << "every place is counted once";
    next = cursor.place() + cursor.covers();
    if (cursor.kind() == PlaceKind::kPoint) points.push_back(Sweep::axes(cursor.point()));
  }
  EXPECT_EQ(next, sweep.places());
  return points;
}

std::string error_of(const std::string& text) {
  const SweepFile file(text);
  try {
    load_sweep(file.path());
  } catch (const config::ConfigError& error) {
    return error.what();
  }
  return {};
}

TEST(SweepPlan, GridsZipsAndListsAreGoneThroughInOrder) {
  EXPECT_THAT(points_of(case_of("    axes:\n      grid: {parallel.tp: [1, 2]}\n"
                                "      zip: [{batch.micro: [1, 8], kv_length: [64, 128]}]\n"
                                "      list: [{batch.micro: 5}, {batch.micro: 6}]\n")),
              testing::ElementsAre("tp 1, micro 1, kv_length 64", "tp 1, micro 8, kv_length 128",
                                   "tp 2, micro 1, kv_length 64", "tp 2, micro 8, kv_length 128",
                                   "micro 5", "micro 6"));
}

TEST(SweepPlan, AxesOfTheFileComeBeforeThoseOfEachCase) {
  EXPECT_THAT(
      points_of("axes: {grid: {parallel.tp: [1, 2]}}\n" +
                case_of("    axes: {grid: {batch.micro: [3, 4]}}\n")),
      testing::ElementsAre("tp 1, micro 3", "tp 1, micro 4", "tp 2, micro 3", "tp 2, micro 4"));
}

TEST(SweepPlan, RangesIncludeTheirEndsAndKeepTheirUnits) {
  EXPECT_THAT(points_of(case_of("    axes:\n      grid:\n"
                                "        batch.micro: {range: {from: 2, to: 8, step: 3}}\n")),
              testing::ElementsAre("micro 2", "micro 5", "micro 8"));
  EXPECT_THAT(
      points_of(case_of("    axes:\n      grid:\n        system.accelerator.memory.bandwidth: "
                        "{range: {from: 1 TB/s, to: 1.3 TB/s, step: 100 GB/s}}\n")),
      testing::ElementsAre("bandwidth 1 TB/s", "bandwidth 1.1 TB/s", "bandwidth 1.2 TB/s",
                           "bandwidth 1.3 TB/s"));
  EXPECT_THAT(points_of(case_of("    axes:\n      grid:\n"
                                "        batch.micro: {logrange: {from: 1, to: 64, factor: 4}}\n")),
              testing::ElementsAre("micro 1", "micro 4", "micro 16", "micro 64"));
  EXPECT_THAT(points_of(case_of("    axes:\n      grid:\n        carbon_intensity: {range: {from: "
                                "100 gCO2/kWh, to: 0.2 t CO2/MWh, step: 50 kg CO2/MWh}}\n")),
              testing::ElementsAre("carbon_intensity 100 gCO2/kWh", "carbon_intensity 150 gCO2/kWh",
                                   "carbon_intensity 200 gCO2/kWh"));
  // Whole numbers where the key takes no others: 1, 2.15, 4.64, 10.
  EXPECT_THAT(points_of(case_of("    axes:\n      grid:\n"
                                "        batch.micro: {logrange: {from: 1, to: 10, count: 4}}\n")),
              testing::ElementsAre("micro 1", "micro 2", "micro 5", "micro 10"));
}

TEST(SweepPlan, ValuesAndPointsComeFromTables) {
  const SweepFile table("batch.micro,kv_length\n1,64\n2,128\n", "table.csv");
  EXPECT_THAT(points_of(case_of("    axes: {grid: {batch.micro: {csv: " + table.path() +
                                ", column: batch.micro}}}\n")),
              testing::ElementsAre("micro 1", "micro 2"));
  EXPECT_THAT(points_of(case_of("    axes: {list: [{csv: " + table.path() + "}]}\n")),
              testing::ElementsAre("micro 1, kv_length 64", "micro 2, kv_length 128"));
  EXPECT_THAT(error_of(case_of("    axes: {grid: {batch.micro: {csv: " + table.path() +
                               ", column: batch.micr}}}\n")),
              HasSubstr("did you mean 'batch.micro'?"));
}

TEST(SweepPlan, ConditionalAxesBelongToThePointsThatTheirConditionHoldsFor) {
  EXPECT_THAT(points_of(case_of("    axes: {grid: {parallel.tp: [1, 4]}}\n"
                                "    when:\n      - if: parallel.tp > 2\n"
                                "        grid: {batch.micro: [7, 9]}\n")),
              testing::ElementsAre("tp 1", "tp 4, micro 7", "tp 4, micro 9"));
}

TEST(SweepPlan, RulesKeepWhatACheckOfEachPointKeeps) {
  const SweepFile file(case_of(
      "    axes:\n      grid:\n        parallel.tp: [1, 2, 4, 8, 16]\n        precision: [bf16, "
      "fp8]\n"
      "        batch.micro: [1, 8, 64, 512]\n        kv_length: [1024, 65536]\n"
      "    where:\n      - parallel.tp * batch.micro <= 1024 and precision != fp8\n"
      "      - ranks <= available_ranks\n      - memory.bytes < 60 GB\n      - memory.fits\n"));
  const Sweep sweep = load_sweep(file.path());
  std::set<std::uint64_t> kept;
  std::map<std::size_t, std::uint64_t> excluded;
  for (PlanCursor cursor(sweep); !cursor.at_end(); cursor.next()) {
    if (cursor.kind() == PlaceKind::kPoint) kept.insert(cursor.place());
    if (cursor.kind() == PlaceKind::kExcluded) excluded[cursor.rule()] += cursor.covers();
  }
  // The same by loading each point of the cross product, its memory by its own figures.
  std::uint64_t place = 0;
  for (const int tp : {1, 2, 4, 8, 16})
    for (const bool fp8 : {false, true})
      for (const int micro : {1, 8, 64, 512})
        for (std::size_t kv = 0; kv < 2; ++kv, ++place) {
          bool keeps = tp * micro <= 1024 && !fp8 && tp <= 8;
          if (keeps) {
            PlanCursor cursor(sweep);
            cursor.seek(place);
            const LoadedExperiment& loaded = cursor.whole();
            const auto& e = loaded.as<ModelExperiment>();
            const Bytes need = worst_stage(e.memory(e.model.build(), e.parallel)).total();
            keeps = need.base() < 60e9 && need <= e.usable_memory();
          }
          EXPECT_EQ(kept.count(place) > 0, keeps) << place;
        }
  EXPECT_EQ(excluded.size(), 3U) << "what fits in 60 GB fits";
  // The whole plan adds up.
  const ResultStore store = ResultStore::open(file.path() + ".db");
  const PlanCounts counts = count_plan(sweep, store, {}).counts;
  EXPECT_EQ(counts.points(), kept.size());
  EXPECT_EQ(counts.to_do, kept.size());
  EXPECT_EQ(counts.places, 80U);
}

TEST(SweepPlan, APlaceIsTheSameHoweverItIsReached) {
  const SweepFile file(
      case_of("    variants: [{name: x, system: dgx_h100}, {name: y, system: dgx_h200}]\n"
              "    axes:\n      grid: {parallel.tp: [1, 2, 8], precision: [bf16, fp8]}\n"
              "      random: {n: 5, space: {kv_length: {min: 64, max: 4096, log: true}}}\n"
              "    where: [parallel.tp != 2 or kv_length > 500]\n"));
  const Sweep sweep = load_sweep(file.path());
  std::map<std::uint64_t, std::string> in_order;
  for (PlanCursor cursor(sweep); !cursor.at_end(); cursor.next())
    if (cursor.kind() == PlaceKind::kPoint) in_order[cursor.place()] = cursor.identity();
  EXPECT_GT(in_order.size(), 40U);
  PlanCursor cursor(sweep);
  std::mt19937 random(3);
  for (int i = 0; i < 200; ++i) {
    cursor.seek(random() % sweep.places());
    const auto expected = in_order.find(cursor.place());
    ASSERT_EQ(cursor.kind() == PlaceKind::kPoint, expected != in_order.end()) << cursor.place();
    if (expected == in_order.end()) continue;
    EXPECT_EQ(cursor.identity(), expected->second);
    if (i % 40 == 0) {
      EXPECT_EQ(cursor.whole().identity, expected->second);
    }
  }
}

TEST(SweepPlan, TenMillionPointsAreKnownByTheirIndex) {
  const SweepFile file(
      case_of("    axes:\n      grid:\n        parallel.tp: [1, 2, 4, 8]\n"
              "        batch.micro: {range: {from: 1, to: 500, step: 1}}\n"
              "        kv_length: {range: {from: 16, to: 80000, step: 16}}\n"));
  const Sweep sweep = load_sweep(file.path());
  EXPECT_EQ(sweep.places(), 10'000'000U);
  PlanCursor cursor(sweep);
  cursor.seek(9'999'999);
  EXPECT_EQ(Sweep::axes(cursor.point()), "tp 8, micro 500, kv_length 80000");
  cursor.seek(2'500'000 + 5000 + 1);
  EXPECT_EQ(Sweep::axes(cursor.point()), "tp 2, micro 2, kv_length 32");
}

TEST(SweepPlan, MistakesInConditionsAreShownInsideTheirText) {
  const auto where = [](const std::string& rule) {
    return error_of(case_of("    where:\n      - " + rule + "\n"));
  };
  EXPECT_THAT(where("paralel.tp <= 8"), HasSubstr(":6:9: error: unknown name 'paralel.tp'"));
  EXPECT_THAT(where("nodes > 1 and parallel.tq <= 8"), HasSubstr(":6:23: error: unknown name"));
  EXPECT_THAT(where("memory.bytes < 5 ms"), HasSubstr("a data size and a duration cannot be"));
  EXPECT_THAT(where("precision == bf17"), HasSubstr("did you mean 'bf16'?"));
  EXPECT_THAT(where("parallel.tp * 2"), HasSubstr("has to be a condition"));
  EXPECT_THAT(error_of("sweep: plan\ncases:\n  - name: a\n    base: {experiment: operator, system: "
                       "dgx_h100, operator: {kind: gemm, m: 64, n: 64, k: 64}}\n"
                       "    where: [memory.fits]\n"),
              HasSubstr("an experiment of kind operator cannot tell memory.fits"));
}

double at(Sampler sampler, std::uint64_t n, std::int64_t seed, std::uint64_t point,
          std::size_t dimension) {
  return UnitPoints({n, sampler, seed}, 8).at(point, dimension);
}

TEST(RandomAxis, SobolPointsAreThoseOfJoeAndKuo) {
  // The first points in two dimensions without the origin, as in every table of the sequence.
  const std::pair<double, double> expected[] = {{0.5, 0.5},     {0.75, 0.25},   {0.25, 0.75},
                                                {0.375, 0.375}, {0.875, 0.875}, {0.625, 0.125},
                                                {0.125, 0.625}};
  for (std::uint64_t i = 0; i < 7; ++i) {
    EXPECT_EQ(at(Sampler::kSobol, 7, 0, i, 0), expected[i].first) << i;
    EXPECT_EQ(at(Sampler::kSobol, 7, 0, i, 1), expected[i].second) << i;
  }
}

TEST(RandomAxis, ALatinHypercubeVisitsEachStratumOnce) {
  for (const std::uint64_t n : {1U, 7U, 64U, 1000U}) {
    for (std::size_t dimension = 0; dimension < 3; ++dimension) {
      std::set<std::uint64_t> strata;
      for (std::uint64_t i = 0; i < n; ++i) {
        const double unit = at(Sampler::kLatinHypercube, n, 5, i, dimension);
        ASSERT_GE(unit, 0);
        ASSERT_LT(unit, 1);
        strata.insert(static_cast<std::uint64_t>(unit * static_cast<double>(n)));
      }
      EXPECT_EQ(strata.size(), n);
    }
  }
}

TEST(RandomAxis, EverySamplerIsEvenAndFollowsItsSeed) {
  constexpr std::uint64_t kPoints = 4096;
  for (const Sampler sampler : {Sampler::kSobol, Sampler::kLatinHypercube, Sampler::kUniform}) {
    for (std::size_t dimension : {0U, 5U}) {
      const UnitPoints points({kPoints, sampler, 9}, 8), others({kPoints, sampler, 10}, 8);
      double sum = 0, squares = 0;
      std::size_t same = 0;
      for (std::uint64_t i = 0; i < kPoints; ++i) {
        const double unit = points.at(i, dimension);
        EXPECT_EQ(unit, points.at(i, dimension));
        sum += unit;
        squares += unit * unit;
        same += unit == others.at(i, dimension) ? 1 : 0;
      }
      // Of independent draws the standard errors are 0.0045 and 0.0047.
      EXPECT_NEAR(sum / kPoints, 0.5, 0.02);
      EXPECT_NEAR(squares / kPoints, 1.0 / 3, 0.02);
      EXPECT_LT(same, 5U);
    }
  }
}

TEST(Limits, FailuresAreCountedOrAShare) {
  LimitsConfig limits;
  EXPECT_FALSE(limits.failures_allowed(100).has_value());
  limits.max_failures = "5%";
  EXPECT_EQ(limits.failures_allowed(1000), 50U);
  limits.max_failures = "7";
  EXPECT_EQ(limits.failures_allowed(1000), 7U);
}

}  // namespace
}  // namespace orrery::sweep_plan_test
