// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <vector>

#include "sim/app/pricing/pricing.h"
#include "sim/machine/kernel_model.h"

namespace orrery {

/// The accelerator that kernels are priced for in a power state. In the steady state it is under
/// the cap of the part as sold: what a lower one costs is for the balance to say, and once.
AcceleratorConfig priced_accelerator(const AcceleratorConfig& accelerator, PowerState state);

/// One balance for all devices: P(s) = floor + (core energy x (V(s)/V0)^2 + memory energy + busy
/// units) / T(s), with s the clock over the boost clock and T(s) = launch + body x max(1, k / s). k
/// is the lowest clock at which a kernel keeps the time that the kernel model gives. What that is,
/// is what the two states differ in.

/// Kernels as they are measured (power.state burst). The time stays; the clock is the highest at
/// which the work, done in that time, keeps the cap. k is the clock at which the units would have
/// to issue without a gap: where even there the cap cannot be kept, time is stretched. What the
/// units do not limit has none below the clock at which the voltage is at its floor: less would win
/// nothing but time.
void balance_burst(const std::vector<Kernel>& kernels, const AcceleratorConfig& accelerator,
                   std::vector<KernelCost>& costs);

/// Kernels that are repeated without end (power.state steady), all at one clock. k is the clock of
/// the burst, or the measured one where that is higher (KernelCost::clock): what lowers it lets the
/// units issue at the same share of their clocks. What the memory limits keeps its time down to the
/// clock below which the voltage does not fall.
class SteadyClock {
 public:
  /// @param costs as the kernel model gives them for priced_accelerator()
  SteadyClock(const std::vector<Kernel>& kernels, const AcceleratorConfig& accelerator,
              std::vector<KernelCost> costs);

  /// The share of the boost clock above which no kernel runs.
  double highest() const;
  /// What the kernels cost at a share of the boost clock.
  std::vector<KernelCost> at(double share) const;

 private:
  std::vector<KernelCost> costs_;
  std::vector<double> keeps_, highest_;  ///< kernels keep their time, and run, at these clocks
};

/// The highest share of the boost clock, up to `highest`, at which `power` keeps the cap, to a
/// twentieth of a percent of what that leaves above idling: less than what a kernel more or less in
/// a step changes. Every try may cost a replay: some five are made.
/// @param power in the steady state at a share; the last call is the one that is returned
/// @throws config::KeyError at system.accelerator.power where no clock keeps it, because of what
/// does not follow the clock
double steady_share(const PowerConfig& limits, double highest,
                    const std::function<Watts(double share)>& power);

/// Energies above idle of one run on one rank, by kernel, at the clocks of their costs.
std::vector<Joules> run_energies(const std::vector<Kernel>& kernels,
                                 const std::vector<KernelCost>& costs,
                                 const AcceleratorConfig& accelerator);

/// A die while an operator runs.
struct OperatorPower {
  std::vector<KernelCost> costs;  ///< costs by kernel, at the clocks at which they run
  Hertz clock;                    ///< clock of the units, the mean by time
  EnergyUse energy;
};

/// Prices kernels that run one after the other, at their clocks in a power state (power_balance.h).
/// @param state kBurst or kSteady
OperatorPower settle_operator(const std::vector<Kernel>& kernels,
                              const AcceleratorConfig& accelerator, PowerState state,
                              const KernelModel& model);

}  // namespace orrery
