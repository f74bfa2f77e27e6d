// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>

#include "sim/machine/accelerator_config.h"

namespace orrery {

/// The highest clock of a device: compute.boost_clock, or compute.clock where there is none.
Hertz boost_clock(const AcceleratorConfig& device);

/// What a device is kept busy with: the rates that it would reach at its boost clock.
struct Activity {
  Precision precision = Precision::kBf16;
  FlopsPerSecond matrix;
  FlopsPerSecond vector;
  BytesPerSecond memory;
  BytesPerSecond cache;  ///< found in the last cache
  double data = 1;       ///< energy of these operands over that of random ones; zeros take less
};

/// P(f) = P_active + P_busy(f) + sum of energy x rate x (V/V0)^2, where the memory has its own
/// supply: no V. V(f) is at its floor up to power.floor_clock and linear above. V0 is the voltage
/// that energies of the configuration hold at: they close the power balance of a product at its
/// achievable rate, so it is that of the clock at which units that issue 0.9 of their peak reach
/// this rate (the only clock where there is no boost clock).
/// @param share of the boost clock
Watts power_at(const AcceleratorConfig& device, const Activity& activity, double share);

/// Power of all units of the device while they run or wait, at a share of the boost clock:
/// power.busy x units x share x (V / V at the boost clock)^2.
Watts busy_power(const AcceleratorConfig& device, double share);

/// (V/V0)^2 of power_at().
double energy_of_voltage(const AcceleratorConfig& device, Precision precision, double share);

/// Share of the boost clock up to which the voltage is at its floor.
double floor_share(const AcceleratorConfig& device);

/// The largest share of the boost clock, up to `highest`, at which a power that grows with it is
/// within the cap. Clocks have no lower end here: what idles below the cap has such a share.
/// @throws std::logic_error where even a thousandth of a thousandth is too much
double share_within(Watts cap, double highest, const std::function<Watts(double share)>& power);

/// The clock that a device keeps up, and what it draws at it.
struct ClockState {
  Hertz clock;
  Watts power;
};

/// The highest clock, up to the boost clock, at which power_at() is within the cap: what long runs
/// settle at.
ClockState sustained_clock(const AcceleratorConfig& device, const Activity& activity);

/// The whole device at matrix products that issue 0.9 of the peak (without a boost clock: what they
/// achieve), with a tenth of the memory bandwidth beside them, as the device is sold: a FLOP takes
/// as many bytes where rates were changed.
Activity long_product(const AcceleratorConfig& device, Precision precision);

/// How much longer long products take than at the boost clock: boost over sustained clock. What
/// `gemm.throttle` + 1 is on devices that nobody measured.
double product_slowdown(const AcceleratorConfig& device, Precision precision);

/// `1 + throttle` of long products on this device, when `1 + throttle` was measured on the device
/// as sold: the cap allows another clock where units, rates, clock or the cap were changed. Without
/// changes it is what was measured.
double throttle_here(const AcceleratorConfig& device, Precision precision, double throttle);

/// `throttle` that was fitted on `from` on a sibling `to`, of another cap or other energies: what
/// the balance says of both, and the rest as it was.
double throttle_moved(const AcceleratorConfig& from, const AcceleratorConfig& to,
                      Precision precision, double throttle);

/// Time of long products over what the sustained rate of the device as sold, in proportion to its
/// peak, says: the same for models whose efficiencies hold under the cap. 1 without changes.
double sustained_change(const AcceleratorConfig& device, Precision precision);

/// The largest of `count` draws of the standard normal distribution, on average (Blom 1958); 0 for
/// one draw.
double expected_largest(double count);

/// Dies of a kind need different energies for the same work (power.spread), and those that work in
/// step wait for the one whose clock the cap lowers most. The device of ordinary energies under the
/// cap that this one of `packages` leaves it: floor + (cap - floor) / (1 + spread x
/// expected_largest(packages)).
AcceleratorConfig slowest_of(const AcceleratorConfig& accelerator, double packages);

}  // namespace orrery
