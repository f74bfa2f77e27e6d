// SPDX-License-Identifier: Apache-2.0
#pragma once

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
  BytesPerSecond cache;    ///< found in the last cache
  double data = 1;         ///< energy of these operands over that of random ones; zeros take less
  bool with_clock = true;  ///< rates fall with the clock; false: something else limits them
};

/// P(f) = P_idle + sum of energy x rate x (V/V0)^2, where the memory has its own supply: no V. V(f)
/// is at its floor up to power.floor_clock and linear above. V0 is the voltage that energies of the
/// configuration hold at: they close the power balance of a product at its achievable rate, so it
/// is that of the clock at which units that issue 0.9 of their peak reach this rate (the only clock
/// where there is no boost clock).
/// @param share of the boost clock
Watts power_at(const AcceleratorConfig& device, const Activity& activity, double share);

/// (V/V0)^2 of power_at().
double energy_of_voltage(const AcceleratorConfig& device, Precision precision, double share);

/// The clock that a device keeps up, and what it draws at it.
struct ClockState {
  Hertz clock;
  Watts power;
};

/// The highest clock, up to the boost clock, at which power_at() is within the cap: what long runs
/// settle at.
ClockState sustained_clock(const AcceleratorConfig& device, const Activity& activity);

/// Share of the throttle that a kernel meets which takes `us` without: `automatic` is what its
/// family says of kernels as they are measured. After idling, power management lets the boost clock
/// be for power.response, so the share is that of the time after it; in the steady state it is all.
double throttle_reached(const PowerConfig& power, double us, double automatic);

/// The whole device at matrix products that issue 0.9 of the peak (without a boost clock: what they
/// achieve), with a tenth of the memory bandwidth beside them.
Activity long_product(const AcceleratorConfig& device, Precision precision);

/// How much longer long products take than at the boost clock: boost over sustained clock. What
/// `gemm.throttle` + 1 is on devices that nobody measured.
double product_slowdown(const AcceleratorConfig& device, Precision precision);

/// `1 + throttle` of long products on this device, when `1 + throttle` was measured on the device
/// as sold: the cap allows another clock where units, rates, clock or the cap were changed. Without
/// changes it is what was measured; in the states `boost` and `steady`, in which more throttle than
/// where kernels are measured may be reached, at least product_slowdown().
double throttle_here(const AcceleratorConfig& device, Precision precision, double throttle);

/// Time of long products over what the sustained rate of the device as sold, in proportion to its
/// peak, says: the same for models whose efficiencies hold under the cap. 1 without changes.
double sustained_change(const AcceleratorConfig& device, Precision precision);

}  // namespace orrery
