// SPDX-License-Identifier: Apache-2.0
#include "sim/app/pricing/power_balance.h"

#include <gtest/gtest.h>

#include <cmath>

#include "sim/config/diagnostics.h"
#include "sim/machine/clock.h"

namespace orrery::power_balance_test {
namespace {

using namespace literals;

constexpr Picoseconds kUs = 1'000'000;

/// 100 W idle; 100 TFLOP/s of 4 pJ at the boost clock of 2 GHz: 400 W. Voltage 0.5 up to 1 GHz,
/// then linear to 1 at 2 GHz, where energies hold.
AcceleratorConfig chip(Watts cap) {
  AcceleratorConfig a;
  a.compute.clock.value = Hertz(2e9);
  a.compute.units.value = 1;
  a.compute.matrix[Precision::kBf16].value = 100_TFLOPps;
  a.compute.vector.value = 100_TFLOPps;
  a.kernel.matrix_efficiency[Precision::kBf16].value = 0.9;
  a.energy.matrix[Precision::kBf16].value = JoulesPerFlop(4e-12);
  a.energy.memory.value = JoulesPerByte(40e-12);
  a.memory.bandwidth.value = 10_TBps;
  a.power.idle.value = Watts(100);
  a.power.tdp.value = cap;
  a.power.floor_clock.value = 0.5;
  a.power.floor_voltage.value = 0.5;
  return a;
}

/// 100 us at `share` of the peak.
Kernel product(double share) {
  Kernel kernel;
  kernel.matrix_flops = Flops(100e12 * 100e-6 * share);
  return kernel;
}

KernelCost cost(Bound bound, double clock = 1) {
  KernelCost c;
  c.duration = 100 * kUs;
  c.bound = bound;
  c.clock = clock;
  return c;
}

double power(const Kernel& kernel, const KernelCost& c, const AcceleratorConfig& a) {
  return a.power.floor().base() +
         run_energies({kernel}, {c}, a)[0].base() / to_seconds(c.duration).base();
}

TEST(PowerBalance, AMeasuredKernelKeepsItsTimeAtTheHighestClockWithinTheCap) {
  // 0.8 of the peak: 320 W at the voltage of the boost clock. 100 + 320 V^2 = 310 W: V = 0.81, that
  // of 1.62 GHz.
  std::vector<KernelCost> costs = {cost(Bound::kTensor, 0.5)};
  balance_burst({product(0.8)}, chip(Watts(310)), costs);
  EXPECT_EQ(costs[0].duration, 100 * kUs);
  EXPECT_NEAR(costs[0].clock, std::sqrt(210.0 / 320), 1e-9);
  // Where the cap allows it, the clock is the boost clock, whatever was fitted.
  costs = {cost(Bound::kTensor, 0.5)};
  balance_burst({product(0.8)}, chip(Watts(421)), costs);
  EXPECT_EQ(costs[0].clock, 1);
}

// 120 W of a held device, 200 W of units that wait, 150 W of the memory: 470 W. Within 400 W units
// have 130 W, s V(s)^2 = s^3 = 0.65. The memory takes the time that it takes.
TEST(PowerBalance, UnitsThatWaitForTheMemoryLowerTheirClockAndNotTheTime) {
  AcceleratorConfig a = chip(Watts(400));
  a.power.active = Fact<Watts>{Watts(120)};
  a.power.busy.value = Watts(200);
  Kernel stream;
  stream.read = Bytes(150.0 / 40e-12 * 100e-6);
  std::vector<KernelCost> costs = {cost(Bound::kMemory)};
  balance_burst({stream}, a, costs);
  EXPECT_EQ(costs[0].duration, 100 * kUs);
  EXPECT_NEAR(costs[0].clock, std::cbrt(0.65), 1e-6);
  EXPECT_NEAR(power(stream, costs[0], a), 400, 1e-4);
}

// A launch keeps no unit busy, and a longer kernel of the same work never takes less energy.
TEST(PowerBalance, UnitsDrawAsLongAsTheyAreBusy) {
  AcceleratorConfig a = chip(Watts(1000));
  a.power.busy.value = Watts(200);
  KernelCost shorter = cost(Bound::kTensor), longer = shorter, launched = shorter;
  longer.duration *= 2;
  launched.launch = launched.duration;
  const auto energy = [&](const KernelCost& c) { return run_energies({product(0.1)}, {c}, a)[0]; };
  EXPECT_NEAR((energy(longer) - energy(shorter)).base(), 200 * 100e-6, 1e-9);
  EXPECT_NEAR((energy(shorter) - energy(launched)).base(), 200 * 100e-6, 1e-9);
}

TEST(PowerBalance, ACapThatUnitsWithoutAGapCannotKeepStretchesTheTime) {
  // At 0.8 of the boost clock units issue all the time: 100 + 320 x 0.64 = 305 W. Under 200 W,
  // s / 0.8 x 320 V(s)^2 = 100 W.
  std::vector<KernelCost> costs = {cost(Bound::kTensor)};
  const AcceleratorConfig a = chip(Watts(200));
  balance_burst({product(0.8)}, a, costs);
  const double s = costs[0].clock;
  EXPECT_NEAR(s / 0.8 * 320 * s * s, 100, 1e-6);
  EXPECT_NEAR(static_cast<double>(costs[0].duration), 100e6 * 0.8 / s, 2);
  EXPECT_LE(power(product(0.8), costs[0], a), 200);
}

TEST(PowerBalance, BelowTheFloorOfTheVoltageTheClockFallsAsTimeGrows) {
  // 0.4 of the peak at half the voltage: 80 W, at 0.8 GHz without a gap. Under 120 W only 20 are
  // left: four times the time, a quarter of the clock.
  std::vector<KernelCost> costs = {cost(Bound::kTensor)};
  const AcceleratorConfig a = chip(Watts(120));
  balance_burst({product(0.8)}, a, costs);
  const double stretched = to_seconds(costs[0].duration).base() / 100e-6;
  EXPECT_NEAR(costs[0].clock * stretched, 0.8, 1e-6);
  EXPECT_NEAR(stretched, 320 * 0.25 / 20, 1e-6);
}

TEST(PowerBalance, PricesOfTheSteadyStateAreThoseUnderTheCapOfThePartAsSold) {
  AcceleratorConfig a = chip(Watts(500));
  a.power.limit.emplace();
  a.power.limit->value = Watts(200);
  EXPECT_EQ(priced_accelerator(a, PowerState::kSteady).power.cap(), Watts(500));
  EXPECT_EQ(priced_accelerator(a, PowerState::kBurst).power.cap(), Watts(200));
}

TEST(PowerBalance, InTheSteadyStateUnitsIssueAtTheirMeasuredShare) {
  const AcceleratorConfig a = chip(Watts(500));
  const std::vector<Kernel> kernels = {product(0.8)};
  const SteadyClock steady(kernels, a, {cost(Bound::kTensor)});
  EXPECT_EQ(steady.at(1)[0].duration, 100 * kUs);
  EXPECT_NEAR(static_cast<double>(steady.at(0.8)[0].duration), 125e6, 1);
  EXPECT_EQ(steady.at(0.8)[0].clock, 0.8);
}

TEST(PowerBalance, WhatTheMemoryLimitsWaitsForItDownToTheFloorOfTheVoltage) {
  Kernel stream;
  stream.read = Bytes(10e12 * 100e-6);
  const AcceleratorConfig a = chip(Watts(1000));
  const std::vector<Kernel> kernels = {stream};
  const SteadyClock steady(kernels, a, {cost(Bound::kMemory)});
  EXPECT_EQ(steady.at(0.6)[0].duration, 100 * kUs);
  EXPECT_NEAR(static_cast<double>(steady.at(0.25)[0].duration), 200e6, 1);
}

TEST(PowerBalance, LaunchesDoNotStretch) {
  const AcceleratorConfig a = chip(Watts(500));
  const std::vector<Kernel> kernels = {product(0.5)};
  KernelCost c = cost(Bound::kTensor);
  c.launch = 20 * kUs;
  EXPECT_NEAR(static_cast<double>(SteadyClock(kernels, a, {c}).at(0.5)[0].duration), 180e6, 1);
}

TEST(PowerBalance, KernelsOfManyPrecisionsPayTheirOwn) {
  AcceleratorConfig a = chip(Watts(500));
  a.compute.matrix[Precision::kNvfp4].value = 400_TFLOPps;
  a.kernel.matrix_efficiency[Precision::kNvfp4].value = 0.9;
  a.energy.matrix[Precision::kNvfp4].value = JoulesPerFlop(1e-12);
  Kernel narrow = product(1);
  narrow.precision = Precision::kNvfp4;
  const auto energies =
      run_energies({product(1), narrow}, {cost(Bound::kTensor), cost(Bound::kTensor)}, a);
  EXPECT_NEAR(energies[0] / energies[1], 4, 1e-9);
}

TEST(PowerBalance, TheSteadyShareIsWithinATwentiethOfAPercentOfWhatTheCapLeavesAboveIdling) {
  PowerConfig limits;
  limits.idle.value = Watts(100);
  for (const double above : {200.0, 20.0}) {
    limits.tdp.value = Watts(100 + above);
    int tries = 0;
    const auto cubic = [&](double share) {
      ++tries;
      return Watts(100 + 300 * share * share * share);
    };
    const double share = steady_share(limits, 1, cubic);
    EXPECT_LE(cubic(share).base(), 100 + above);
    EXPECT_GE(cubic(share).base(), 100 + 0.9995 * above);
    EXPECT_LE(tries, 7);
  }
  limits.tdp.value = Watts(300);
  EXPECT_EQ(steady_share(limits, 1, [](double s) { return Watts(100 + 200 * s); }), 1);
}

// A step with few products among much else, as copies into buffers make it: the clock takes little
// of its power. Where the search ended anywhere within half a percent of the cap, more work took
// less time.
TEST(PowerBalance, AStepThatDrawsMoreHasNoHigherClock) {
  PowerConfig limits;
  limits.idle.value = Watts(100);
  limits.tdp.value = Watts(1100);
  double before = 2;
  for (int i = 0; i < 40; ++i) {
    int tries = 0;
    const auto flat_above = [&](double share) {
      ++tries;
      return Watts(100 + (1005 + 0.5 * i) * std::min(share, 0.985) / 0.985 + 0.1 * share);
    };
    const double share = steady_share(limits, 1, flat_above);
    EXPECT_LE(share, before * 1.0005) << i;
    EXPECT_NEAR(share, 0.985 * 1000 / (1005 + 0.5 * i), 0.001) << i;
    EXPECT_LE(tries, 9) << i;
    before = share;
  }
}

TEST(PowerBalance, APowerThatJumpsEndsBelowTheCap) {
  PowerConfig limits;
  limits.idle.value = Watts(100);
  limits.tdp.value = Watts(300);
  const auto step = [](double share) { return Watts(share > 0.7 ? 400 : 200); };
  EXPECT_NEAR(steady_share(limits, 0.9, step), 0.7, 0.001);
}

TEST(PowerBalance, ACapBelowWhatDoesNotFollowTheClockIsAnError) {
  PowerConfig limits;
  limits.idle.value = Watts(100);
  limits.tdp.value = Watts(150);
  EXPECT_THROW(steady_share(limits, 1, [](double s) { return Watts(160 + 100 * s); }),
               config::KeyError);
}

}  // namespace
}  // namespace orrery::power_balance_test
