// SPDX-License-Identifier: Apache-2.0
#include "models/kernels/tiles/prompt_tiles.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <queue>
#include <vector>

#include "sim/units/hash.h"

namespace orrery::dispatch_tail_test {
namespace {

TEST(DispatchTail, NoMoreJobsThanServersAllStartAtOnce) {
  EXPECT_EQ(last_start(1, 0.3), 0);
  EXPECT_EQ(last_start(0.2, 0.3), 0);
}

TEST(DispatchTail, EqualJobsComeInWaves) {
  EXPECT_NEAR(last_start(2, 1), 1, 1e-9);
  EXPECT_NEAR(last_start(4.2, 1), 4, 1e-9);
  EXPECT_NEAR(last_start(20, 1), 19, 1e-9);
}

TEST(DispatchTail, LengthsFromZeroUpFillTheServersExponentially) {
  // m(t) + 1 = e^t for lengths uniform on (0, 1) and t <= 1 (Feller, vol. II, XI.1).
  EXPECT_NEAR(last_start(1.5, 0), std::log(1.5), 0.003);
  EXPECT_NEAR(last_start(2, 0), std::log(2.0), 0.003);
}

TEST(DispatchTail, ManyJobsTakeTheirMean) {
  // mean 0.55; (1 + variation) / 2 with variation 0.81 / 12 / 0.3025 = 0.223: 0.55 (20 - 0.612).
  EXPECT_NEAR(last_start(20, 0.1), 10.66, 0.01);
}

TEST(DispatchTail, GrowsWithTheNumberOfJobsAndTheirLength) {
  for (const double shortest : {0.0, 0.07, 0.33, 0.8, 0.95, 0.99, 1.0}) {
    double before = 0;
    for (double jobs = 1; jobs < 12; jobs += 0.05) {
      const double now = last_start(jobs, shortest);
      EXPECT_GE(now, before - 1e-9) << jobs << " " << shortest;
      before = now;
    }
  }
}

/// Hands jobs out in order to whichever server is free first.
double simulate(const std::vector<double>& jobs, std::size_t servers) {
  std::priority_queue<double, std::vector<double>, std::greater<>> free;
  for (std::size_t i = 0; i < servers; ++i) free.push(0);
  double end = 0;
  for (const double job : jobs) {
    const double start = free.top();
    free.pop();
    free.push(start + job);
    end = std::max(end, start + job);
  }
  return end;
}

TEST(DispatchTail, IsWhatHandingOutRandomJobsTakes) {
  // The mean over draws; the longest of the last jobs rarely is quite the longest there is.
  std::uint64_t state = 3;
  for (const double shortest : {0.0, 0.5, 0.8}) {
    for (const std::size_t count : {400U, 700U, 1500U}) {
      double sum = 0, work = 0;
      constexpr int kDraws = 40;
      for (int draw = 0; draw < kDraws; ++draw) {
        std::vector<double> jobs;
        for (std::size_t i = 0; i < count; ++i) {
          jobs.push_back(shortest + (1 - shortest) * next_uniform(state));
          work += jobs.back() / kDraws;
        }
        sum += simulate(jobs, 132) / kDraws;
      }
      const double expected = makespan(static_cast<double>(count), 132, 1, work);
      EXPECT_NEAR(expected / sum, 1, 0.04) << shortest << " " << count;
    }
  }
}

TEST(DispatchTail, NeverBeatsTheWorkOrTheLongestJob) {
  EXPECT_GE(makespan(1000, 132, 1, 700), 700.0 / 132);
  EXPECT_GE(makespan(2, 132, 5, 6), 5);
}

}  // namespace
}  // namespace orrery::dispatch_tail_test
