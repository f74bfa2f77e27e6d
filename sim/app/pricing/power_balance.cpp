// SPDX-License-Identifier: Apache-2.0
#include "sim/app/pricing/power_balance.h"

#include <algorithm>
#include <cmath>
#include <initializer_list>
#include <optional>
#include <utility>

#include "sim/config/diagnostics.h"
#include "sim/machine/clock.h"
#include "sim/machine/limits.h"
#include "sim/units/text.h"

namespace orrery {
namespace {

Seconds longest_at(std::initializer_list<Bound> rates, const Kernel& kernel,
                   const AcceleratorConfig& a) {
  Seconds longest;
  for (const Bound rate : rates) longest = std::max(longest, time_at_rate(kernel, a, rate));
  return longest;
}

/// Whether the time of a kernel does not follow the clock of the units.
bool off_core(Bound bound) {
  return bound == Bound::kMemory || bound == Bound::kHost || bound == Bound::kEngine;
}

Picoseconds stretched(const KernelCost& cost, double keeps, double share) {
  if (share >= keeps) return cost.duration;
  const double body = static_cast<double>(cost.duration - cost.launch) * (keeps / share);
  return checked_add(cost.launch, to_picoseconds(Seconds(std::ceil(body) * 1e-12)));
}

/// The highest clock of one kernel, repeated, at which it keeps the cap.
double clock_alone(const Kernel& kernel, const KernelCost& cost, const AcceleratorConfig& a,
                   double keeps) {
  const EnergyUse run = run_energy(kernel, cost, a);
  const auto power = [&](double share) {
    const Joules energy = run.core() * energy_of_voltage(a, kernel.precision, share) + run.memory;
    const Picoseconds time = stretched(cost, keeps, share);
    return a.power.idle.value + energy / to_seconds(time) * static_cast<double>(a.dies);
  };
  return cost.duration > 0 ? share_within(a.power.cap(), 1, power) : 1;
}

/// Where the units have the most work: the clock at which they would do it without a gap in the
/// time of the kernel.
double keeps_in_burst(const Kernel& kernel, const KernelCost& cost, const AcceleratorConfig& a) {
  const Seconds body = to_seconds(cost.duration - cost.launch);
  const Seconds core = longest_at({Bound::kTensor, Bound::kVector, Bound::kCache}, kernel, a);
  const Seconds beside = longest_at({Bound::kMemory, Bound::kHost, Bound::kEngine}, kernel, a);
  const double clock = a.compute.clock.value / boost_clock(a);
  const double use = body > Seconds(0) ? std::min(1.0, core / body * clock) : 0;
  return core > beside ? use : std::max(floor_share(a), use);
}

}  // namespace

AcceleratorConfig priced_accelerator(const AcceleratorConfig& accelerator, PowerState state) {
  AcceleratorConfig priced = accelerator;
  if (state == PowerState::kSteady && priced.power.cap() < priced.power.tdp.value)
    priced.power.limit.reset();
  return priced;
}

void balance_burst(const std::vector<Kernel>& kernels, const AcceleratorConfig& accelerator,
                   std::vector<KernelCost>& costs) {
  for (std::size_t i = 0; i < kernels.size(); ++i) {
    const double keeps = keeps_in_burst(kernels[i], costs[i], accelerator);
    costs[i].clock = clock_alone(kernels[i], costs[i], accelerator, keeps);
    costs[i].duration = stretched(costs[i], keeps, costs[i].clock);
  }
}

SteadyClock::SteadyClock(const std::vector<Kernel>& kernels, const AcceleratorConfig& accelerator,
                         std::vector<KernelCost> costs)
    : costs_(std::move(costs)) {
  std::optional<AcceleratorConfig> as_sold;
  if (accelerator.power.cap() < accelerator.power.tdp.value)
    as_sold = priced_accelerator(accelerator, PowerState::kSteady);
  const AcceleratorConfig& priced = as_sold ? *as_sold : accelerator;
  for (std::size_t i = 0; i < kernels.size(); ++i) {
    const double least = keeps_in_burst(kernels[i], costs_[i], priced);
    const double burst = clock_alone(kernels[i], costs_[i], priced, least);
    highest_.push_back(std::max(burst, costs_[i].clock));
    keeps_.push_back(off_core(costs_[i].bound) ? std::min(least, highest_[i]) : highest_[i]);
  }
}

double SteadyClock::highest() const {
  return highest_.empty() ? 1 : *std::max_element(highest_.begin(), highest_.end());
}

std::vector<KernelCost> SteadyClock::at(double share) const {
  std::vector<KernelCost> costs = costs_;
  for (std::size_t i = 0; i < costs.size(); ++i) {
    costs[i].duration = stretched(costs[i], keeps_[i], share);
    costs[i].clock = std::min(share, highest_[i]);
  }
  return costs;
}

namespace {

/// Where the search for the clock of the steady state stands: a share that keeps the cap and one
/// that does not, with what they draw.
struct Bracket {
  double within = 0, drawn_within = 0;
  double over = 0, drawn_over = 0;

  /// The share to try next for a power of `aim` above `idle`.
  double next(double idle, double aim) const {
    // Power grows as the 1st to 3rd power of the clock.
    if (within == 0)
      return over * std::clamp(std::pow((aim - idle) / (drawn_over - idle), 0.4), 0.5, 0.97);
    const double part = std::log((aim - idle) / (drawn_within - idle)) /
                        std::log((drawn_over - idle) / (drawn_within - idle));
    return within * std::pow(over / within, std::clamp(part, 0.1, 0.9));
  }
};

}  // namespace

double steady_share(const PowerConfig& limits, double highest,
                    const std::function<Watts(double share)>& power) {
  constexpr double kNear = 0.995;    // of what the cap leaves above idling is near enough
  constexpr double kClose = 1.0005;  // shares; where power jumps
  constexpr double kLowest = 1e-3;
  const double idle = limits.idle.value.base(), cap = limits.cap().base();
  const double near = idle + (cap - idle) * kNear;
  double share = highest, drawn = power(share).base();
  if (drawn <= cap) return share;
  Bracket known;
  while (true) {
    if (drawn > cap) {
      known.over = share;
      known.drawn_over = drawn;
    } else {
      known.within = share;
      known.drawn_within = drawn;
    }
    const bool jumps = known.over < known.within * kClose;
    if (drawn <= cap && (drawn >= near || jumps)) return share;
    share = jumps ? known.within : known.next(idle, (near + cap) / 2);
    if (share < kLowest) {
      throw config::KeyError("system.accelerator.power.limit",
                             print(limits.cap()) +
                                 " cannot be kept: idling and transfers alone draw " +
                                 print(Watts(std::round(drawn))));
    }
    drawn = power(share).base();
  }
}

std::vector<Joules> run_energies(const std::vector<Kernel>& kernels,
                                 const std::vector<KernelCost>& costs,
                                 const AcceleratorConfig& accelerator) {
  std::vector<Joules> energies;
  energies.reserve(kernels.size());
  for (std::size_t i = 0; i < kernels.size(); ++i) {
    const EnergyUse run = run_energy(kernels[i], costs[i], accelerator);
    energies.push_back(run.core() *
                           energy_of_voltage(accelerator, kernels[i].precision, costs[i].clock) +
                       run.memory);
  }
  return energies;
}

}  // namespace orrery
