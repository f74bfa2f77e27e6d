// SPDX-License-Identifier: Apache-2.0
#include "sim/app/pricing/step_price.h"

#include <algorithm>
#include <cmath>
#include <functional>

#include "sim/app/pricing/power_balance.h"
#include "sim/app/pricing/power_trace.h"

namespace orrery {
namespace {

constexpr double kRatio = 0.985;

const std::array<double, ClockGrid::kPoints>& grid_shares() {
  static const std::array<double, ClockGrid::kPoints> shares = [] {
    std::array<double, ClockGrid::kPoints> all{};
    double share = 1;
    for (double& point : all) {
      point = share;
      share *= kRatio;
    }
    return all;
  }();
  return shares;
}

}  // namespace

double ClockGrid::share(std::size_t point) { return grid_shares()[point]; }

ClockGrid::Place ClockGrid::place(double share) {
  const auto& shares = grid_shares();
  if (share >= 1) return {};
  // The first point below; beyond the last one the line through the last two goes on.
  const auto below = std::upper_bound(shares.begin(), shares.end(), share, std::greater<>());
  const auto second =
      std::min<std::size_t>(static_cast<std::size_t>(below - shares.begin()), kPoints - 1);
  const double from = 1 / shares[second - 1], to = 1 / shares[second];
  return {second - 1, second, (1 / share - from) / (to - from)};
}

void StepPrice::add(const StepPrice& other, double times) {
  for (std::size_t i = 0; i < at.size(); ++i) {
    at[i].time += times * other.at[i].time;
    at[i].energy += times * other.at[i].energy;
  }
  highest = std::max(highest, other.highest);
  kernels += times * other.kernels;
}

namespace {

double enqueue_ps(const AcceleratorConfig& accelerator) {
  const auto& launch = accelerator.launch;
  if (!launch || launch->mode != LaunchMode::kStream) return 0;
  return static_cast<double>(to_picoseconds(launch->host.value));
}

}  // namespace

StepClock::StepClock(const AcceleratorConfig& accelerator, PowerState state, int stages)
    : limits_(accelerator.power),
      steady_(state == PowerState::kSteady),
      dies_(accelerator.dies),
      stages_(stages),
      window_(static_cast<double>(to_picoseconds(limits_.response.value))),
      enqueue_(enqueue_ps(accelerator)) {}

StepPrice::At StepClock::sum_at(const PriceTerms& terms, double share) const {
  const ClockGrid::Place place = ClockGrid::place(share);
  StepPrice::At first, second;
  for (const PriceTerm& term : terms) {
    const StepPrice::At& low = term.price->at[place.first];
    const StepPrice::At& high = term.price->at[place.second];
    first.time += term.weight * low.time;
    first.energy += term.weight * low.energy;
    second.time += term.weight * high.time;
    second.energy += term.weight * high.energy;
  }
  return {first.time + place.weight * (second.time - first.time),
          first.energy + place.weight * (second.energy - first.energy)};
}

Watts StepClock::power(StepPrice::At step) const {
  const double busy = step.time / stages_;
  const double energy = even_window_energy(step.energy / stages_, busy, step.time, window_);
  return limits_.floor() + Joules(energy) / Seconds(window_ * 1e-12) * dies_;
}

IterationPrice StepClock::price(const PriceTerms& terms) const {
  StepPrice::At step = sum_at(terms, 1);
  double highest = 0, kernels = 0;
  for (const PriceTerm& term : terms) {
    highest = std::max(highest, term.price->highest);
    kernels += term.weight * term.price->kernels;
  }
  if (steady_ && step.time > 0 && power(step) > limits_.cap()) {
    steady_share(limits_, highest, [&](double share) {
      step = sum_at(terms, share);
      return power(step);
    });
  }
  const double time = std::max(step.time, enqueue_ * kernels);
  return {static_cast<Picoseconds>(std::llround(time)), step.energy, kernels};
}

}  // namespace orrery
