// SPDX-License-Identifier: Apache-2.0
#include "sim/app/pricing/power_trace.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <random>

namespace orrery::power_trace_test {
namespace {

constexpr Picoseconds kMs = 1'000'000'000;

PowerTrace trace(std::vector<Joules> kernels) {
  return PowerTrace(std::move(kernels), {}, 1, Seconds(0.02));
}

TEST(PowerTrace, AShortRunRepeatedAveragesOverItself) {
  // 1 J in the first of 4 ms, again and again: 250 W, whole periods fill the window.
  PowerTrace run = trace({Joules(1)});
  run.kernel_ran(0, 0, 0, kMs);
  EXPECT_NEAR(run.highest(4 * kMs).base(), 250, 1e-9);
}

TEST(PowerTrace, TheHeaviestWindowOfALongRunCounts) {
  // 20 J in 20 ms amid 200 ms: 1 kW, bins touched at both ends add at most a hundredth.
  PowerTrace run = trace({Joules(20)});
  run.kernel_ran(0, 0, 90 * kMs, 110 * kMs);
  EXPECT_GE(run.highest(200 * kMs).base(), 1000 * (1 - 1e-9));
  EXPECT_LE(run.highest(200 * kMs).base(), 1010);
}

TEST(PowerTrace, WindowsReachOverTheEndOfARun) {
  // 10 J at the end and 10 J at the start of the next: 1 kW over 20 ms.
  PowerTrace run = trace({Joules(10)});
  run.kernel_ran(0, 0, 0, 10 * kMs);
  run.kernel_ran(0, 0, 90 * kMs, 100 * kMs);
  EXPECT_GE(run.highest(100 * kMs).base(), 1000 * (1 - 1e-9));
  EXPECT_LE(run.highest(100 * kMs).base(), 1011);
}

TEST(PowerTrace, RolesAreDevicesOfTheirOwn) {
  PowerTrace run({Joules(1), Joules(3)}, {Joules(2)}, 2, Seconds(0.02));
  run.kernel_ran(0, 0, 0, kMs);
  run.kernel_ran(1, 1, 0, kMs);
  run.transfer_ran(1, 0, 0, kMs);
  EXPECT_NEAR(run.highest(kMs).base(), 5000, 1e-6);
}

/// The most that any window of `window` ms holds, by trying each start on a grid of 1/20 ms.
double brute_force(const std::vector<std::array<double, 3>>& spans, double end, double window) {
  double most = 0;
  for (double start = 0; start < end; start += 0.05) {
    double energy = 0;
    for (int period = 0; period <= static_cast<int>(window / end) + 1; ++period) {
      for (const auto& [from, to, joules] : spans) {
        const double a = std::max(start, from + period * end);
        const double b = std::min(start + window, to + period * end);
        if (b > a) energy += joules * (b - a) / (to - from);
      }
    }
    most = std::max(most, energy / (window * 1e-3));
  }
  return most;
}

TEST(PowerTrace, IsNeverBelowAnyWindowAndHardlyAbove) {
  std::mt19937 random(7);
  std::uniform_real_distribution<double> uniform(0, 1);
  for (int run = 0; run < 40; ++run) {
    const double end = 0.5 + 90 * uniform(random) * uniform(random);  // ms
    std::vector<std::array<double, 3>> spans;
    PowerTrace traced({Joules(1)}, {}, 1, Seconds(0.02));
    for (int i = 0; i < 12; ++i) {
      const double from = end * uniform(random), to = from + (end - from) * uniform(random);
      spans.push_back({from, to, 1});
      traced.kernel_ran(0, 0, static_cast<Picoseconds>(from * 1e9),
                        static_cast<Picoseconds>(to * 1e9));
    }
    const double truth = brute_force(spans, end, 20);
    const double found = traced.highest(static_cast<Picoseconds>(end * 1e9)).base();
    EXPECT_GE(found, truth * (1 - 1e-5)) << "run " << run;
    // Short spans put up to a whole joule into the bins at the edges.
    EXPECT_LE(found, truth * 1.03 + 2 / 0.02) << "run " << run;
  }
}

}  // namespace
}  // namespace orrery::power_trace_test
