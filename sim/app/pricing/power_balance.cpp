// SPDX-License-Identifier: Apache-2.0
#include "sim/app/pricing/power_balance.h"

#include <algorithm>
#include <cmath>
#include <initializer_list>
#include <optional>
#include <utility>

#include "sim/app/pricing/power_trace.h"
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

/// Whether KernelCost::clock is the one at which a kernel takes as many clocks as on the device as
/// sold: where a what-if raised the clock. A higher clock, which power would allow, does not
/// shorten such a kernel.
bool is_clock_of_work(const AcceleratorConfig& a) {
  return a.sold && boost_clock(a) > boost_clock(*a.sold);
}

/// The highest clock of one kernel, repeated, at which it keeps the cap.
double clock_alone(const Kernel& kernel, const KernelCost& cost, const AcceleratorConfig& a,
                   double keeps) {
  const auto power = [&](double share) {
    KernelCost at = cost;  // a stretched kernel finds less in the cache: run_energy()
    at.duration = stretched(cost, keeps, share);
    at.clock = share;
    const EnergyUse run = run_energy(kernel, at, a);
    const Joules energy =
        run.core() * energy_of_voltage(a, kernel.precision, share) + run.memory + run.busy;
    return a.power.floor() + energy / to_seconds(at.duration) * static_cast<double>(a.dies);
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
    if (costs[i].fixed) continue;
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
    const KernelCost& cost = costs_[i];
    if (cost.fixed) {
      keeps_.push_back(0);
      highest_.push_back(0);
      continue;
    }
    const double least = keeps_in_burst(kernels[i], cost, priced);
    const double burst = clock_alone(kernels[i], cost, priced, least);
    highest_.push_back(std::max(burst, cost.clock));
    const double core = is_clock_of_work(priced) ? cost.clock : highest_[i];
    keeps_.push_back(off_core(cost.bound) ? std::min(least, highest_[i]) : core);
  }
}

double SteadyClock::highest() const {
  return highest_.empty() ? 1 : *std::ranges::max_element(highest_);
}

std::vector<KernelCost> SteadyClock::at(double share) const {
  std::vector<KernelCost> costs = costs_;
  for (std::size_t i = 0; i < costs.size(); ++i) {
    if (costs[i].fixed) continue;
    costs[i].duration = stretched(costs[i], keeps_[i], share);
    costs[i].clock = std::min(share, highest_[i]);
  }
  return costs;
}

namespace {

/// Where the search for the clock of the steady state stands: a share that keeps the cap and one
/// that does not, with how far what they draw above idling is from the aim, as a logarithm.
class Bracket {
 public:
  /// @param aim watts above idling
  Bracket(double floor, double aim) : floor_(floor), aim_(aim) {}

  void add(double share, double drawn, bool within) {
    End& end = within ? within_ : over_;
    End& other = within ? over_ : within_;
    end = {share, std::log((drawn - floor_) / aim_)};
    // One end that stays pulls the line between both too far its way (Illinois: Dowell and Jarratt,
    // A modified regula falsi method, BIT 11, 1971): its half counts from then on.
    if (last_ == &end) other.off /= 2;
    last_ = &end;
  }
  bool closes_to(double factor) const { return over_.share < within_.share * factor; }
  double within() const { return within_.share; }

  /// The share to try next. Power grows as the 1st to 3rd power of the clock.
  double next() const {
    if (within_.share == 0) return over_.share * std::clamp(std::exp(-0.4 * over_.off), 0.5, 0.97);
    const double part = within_.off / (within_.off - over_.off);
    return within_.share *
           std::pow(over_.share / within_.share, std::clamp(part, kMargin, 1 - kMargin));
  }

 private:
  static constexpr double kMargin = 0.02;  ///< share of the bracket by which every try narrows it
  struct End {
    double share = 0, off = 0;
  };

  double floor_, aim_;
  End within_, over_;
  const End* last_ = nullptr;
};

}  // namespace

double steady_share(const PowerConfig& limits, double highest,
                    const std::function<Watts(double share)>& power) {
  constexpr double kNear = 0.9995;   // of what the cap leaves above idling is near enough
  constexpr double kClose = 1.0002;  // shares; where power jumps
  constexpr double kLowest = 1e-3;
  const double floor = limits.floor().base(), cap = limits.cap().base();
  const double near = floor + (cap - floor) * kNear;
  double share = highest, drawn = power(share).base();
  if (drawn <= cap) return share;
  Bracket known(floor, (near + cap) / 2 - floor);
  while (true) {
    known.add(share, drawn, drawn <= cap);
    const bool jumps = known.closes_to(kClose);
    if (drawn <= cap && (drawn >= near || jumps)) return share;
    share = jumps ? known.within() : known.next();
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
                       run.memory + run.busy);
  }
  return energies;
}

namespace {

/// The most that a window of the kernels averages, one after the other without end.
Watts window_power(const std::vector<Kernel>& kernels, const std::vector<KernelCost>& costs,
                   const AcceleratorConfig& accelerator) {
  PowerTrace trace(run_energies(kernels, costs, accelerator), {}, 1,
                   accelerator.power.response.value);
  Picoseconds now = 0;
  for (std::size_t i = 0; i < costs.size(); ++i) {
    const Picoseconds end = checked_add(now, costs[i].duration);
    trace.kernel_ran(0, static_cast<KernelId>(i), now, end);
    now = end;
  }
  return accelerator.power.floor() + trace.highest(now) * static_cast<double>(accelerator.dies);
}

}  // namespace

OperatorPower settle_operator(const std::vector<Kernel>& kernels,
                              const AcceleratorConfig& accelerator, PowerState state,
                              const KernelModel& model) {
  std::vector<KernelCost> costs;
  const AcceleratorConfig priced = priced_accelerator(accelerator, state);
  const auto prices = model.on(priced);
  costs.reserve(kernels.size());
  for (const Kernel& kernel : kernels) costs.push_back(prices->cost(kernel));
  if (state == PowerState::kSteady) {
    const SteadyClock steady(kernels, accelerator, costs);
    steady_share(accelerator.power, steady.highest(), [&](double share) {
      costs = steady.at(share);
      return window_power(kernels, costs, accelerator);
    });
  } else {
    balance_burst(kernels, accelerator, costs);
  }
  Seconds time, at_boost;
  for (const KernelCost& cost : costs) {
    const Seconds duration = to_seconds(cost.duration);
    time += duration;
    at_boost += duration * cost.clock;
  }
  const EnergyUse energy = kernel_energy(kernels, costs, accelerator);
  return {std::move(costs), boost_clock(accelerator) * (time > Seconds(0) ? at_boost / time : 1),
          energy};
}

}  // namespace orrery
