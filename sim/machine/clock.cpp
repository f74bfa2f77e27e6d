// SPDX-License-Identifier: Apache-2.0
#include "sim/machine/clock.h"

#include <boost/math/special_functions/erf.hpp>

#include <algorithm>
#include <cmath>
#include <stdexcept>

#include "sim/machine/kernel_model.h"

namespace orrery {
namespace {

/// Share of the peak at the actual clock that large products issue, an assumption: gemm
/// efficiencies fitted on the tables of A100, H100 and H200 are 0.85 to 0.92 of the peak at the
/// boost clock.
constexpr double kIssued = 0.9;
constexpr double kProductMemory = 0.1;  ///< share of the bandwidth, as in the power balances
constexpr double kHighest = 2;          ///< no clock above twice the boost clock is looked for

/// Over the voltage at the boost clock.
double voltage(const PowerConfig& power, double share) {
  const double floor = power.floor_clock.value, lowest = power.floor_voltage.value;
  return share <= floor ? lowest : lowest + (1 - lowest) * (share - floor) / (1 - floor);
}

double achieved_share(const AcceleratorConfig& device, Precision precision) {
  const Fact<double>* achieved = find_precision(device.kernel.matrix_efficiency, precision);
  return achieved ? achieved->value : kIssued;
}

/// Share of the peak at its clock that a large product issues. Where there is no boost clock the
/// clock is steady, and all that the achieved rate lacks is not issued.
double issued_share(const AcceleratorConfig& device, Precision precision) {
  return device.compute.boost_clock ? kIssued : achieved_share(device, precision);
}

/// Share of the boost clock at which the energies of the configuration hold.
double energy_share(const AcceleratorConfig& device, Precision precision) {
  const double clock = device.compute.clock.value / boost_clock(device);
  return std::min(1.0, achieved_share(device, precision) * clock / issued_share(device, precision));
}

/// Another clock of the same silicon leaves its voltages where they were: over the clock as sold.
double silicon_clock(const AcceleratorConfig& device) {
  return device.sold ? boost_clock(device) / boost_clock(*device.sold) : 1;
}

JoulesPerFlop matrix_energy(const AcceleratorConfig& device, Precision precision) {
  const Fact<JoulesPerFlop>* energy = find_precision(device.energy.matrix, precision);
  return energy ? energy->value : JoulesPerFlop();
}

/// FLOP/s of large products at the boost clock.
FlopsPerSecond issued_rate(const AcceleratorConfig& device, Precision precision) {
  const double over = boost_clock(device) / device.compute.clock.value;
  return matrix_peak(device, precision) * (device.dies * issued_share(device, precision) * over);
}

double share_within_cap(const AcceleratorConfig& device, const Activity& activity, double highest) {
  return share_within(device.power.cap(), highest,
                      [&](double share) { return power_at(device, activity, share); });
}

/// The clock that the cap allows long products, were there no highest clock.
Hertz allowed_clock(const AcceleratorConfig& device, Precision precision) {
  return boost_clock(device) * share_within_cap(device, long_product(device, precision), kHighest);
}

}  // namespace

Hertz boost_clock(const AcceleratorConfig& device) {
  const ComputeConfig& compute = device.compute;
  return compute.boost_clock ? compute.boost_clock->value : compute.clock.value;
}

double energy_of_voltage(const AcceleratorConfig& device, Precision precision, double share) {
  const double relative = voltage(device.power, share * silicon_clock(device)) /
                          voltage(device.power, energy_share(device, precision));
  return relative * relative;
}

Watts busy_power(const AcceleratorConfig& device, double share) {
  const double clock = share * silicon_clock(device);  // over the boost clock as sold
  const double relative = voltage(device.power, clock);
  return device.power.busy.value * device.compute.units.value * (clock * relative * relative);
}

double floor_share(const AcceleratorConfig& device) {
  return std::min(1.0, device.power.floor_clock.value / silicon_clock(device));
}

double share_within(Watts cap, double highest, const std::function<Watts(double share)>& power) {
  constexpr double kLowest = 1e-6;
  constexpr int kSteps = 60;  // by then neighbouring numbers
  if (power(highest) <= cap) return highest;
  double low = kLowest, high = highest;
  if (!(power(low) <= cap)) throw std::logic_error("no clock keeps the power cap");
  for (int step = 0; step < kSteps; ++step) {
    const double middle = std::sqrt(low * high);
    (power(middle) <= cap ? low : high) = middle;
  }
  return low;
}

Watts power_at(const AcceleratorConfig& device, const Activity& activity, double share) {
  const EnergyConfig& energy = device.energy;
  // energy.memory is the whole way to the cores; what the chip itself takes of it is energy.cache.
  const JoulesPerByte outside = energy.memory.value + energy.transport.value - energy.cache.value;
  const Watts core = activity.matrix * matrix_energy(device, activity.precision) * activity.data +
                     activity.vector * energy.vector.value +
                     (activity.cache + activity.memory) * energy.cache.value;
  return device.power.floor() + busy_power(device, share) +
         core * (share * energy_of_voltage(device, activity.precision, share)) +
         activity.memory * outside * share;
}

ClockState sustained_clock(const AcceleratorConfig& device, const Activity& activity) {
  const double share = share_within_cap(device, activity, 1);
  return {boost_clock(device) * share, power_at(device, activity, share)};
}

Activity long_product(const AcceleratorConfig& device, Precision precision) {
  Activity activity;
  activity.precision = precision;
  activity.matrix = issued_rate(device, precision);
  const MemoryConfig& memory = device.memory.sold ? *device.memory.sold : device.memory;
  activity.memory = memory.bandwidth.value * kProductMemory;
  // Bytes go with FLOPs.
  if (device.sold && find_precision(device.sold->compute.matrix, precision))
    activity.memory = activity.memory * (activity.matrix / issued_rate(*device.sold, precision));
  return activity;
}

double product_slowdown(const AcceleratorConfig& device, Precision precision) {
  return boost_clock(device) / sustained_clock(device, long_product(device, precision)).clock;
}

double throttle_here(const AcceleratorConfig& device, Precision precision, double throttle) {
  if (!device.sold) return throttle;
  const double clocks = device.compute.clock.value / device.sold->compute.clock.value;
  const double allowed = allowed_clock(device, precision) / allowed_clock(*device.sold, precision);
  double slower = (1 + throttle) * clocks / allowed;
  // Bytes that go with more FLOPs cost nothing where the cap is far from both clocks.
  if (clocks > 1) slower = std::min(slower, (1 + throttle) * sustained_change(device, precision));
  return std::max(0.0, slower - 1);
}

double throttle_moved(const AcceleratorConfig& from, const AcceleratorConfig& to,
                      Precision precision, double throttle) {
  if (to.partition) return throttle;  // shares power as it shares units
  // What is left of the units beside other kernels shares the cap with them: theirs are no change.
  AcceleratorConfig sibling = from;
  sibling.power = to.power;
  sibling.power.limit.reset();  // changes of a device come on top in time()
  sibling.energy = to.energy;
  const double slower = product_slowdown(sibling, precision) / product_slowdown(from, precision);
  if (slower == 1) return throttle;  // to the last digit
  return std::max(0.0, (1 + throttle) * slower - 1);
}

double sustained_change(const AcceleratorConfig& device, Precision precision) {
  if (!device.sold) return 1;
  const auto time_over_peak = [&](const AcceleratorConfig& a) {
    return product_slowdown(a, precision) * (a.compute.clock.value / boost_clock(a));
  };
  return time_over_peak(device) / time_over_peak(*device.sold);
}

double expected_largest(double count) {
  if (count <= 1) return 0;
  const double share = (count - 0.375) / (count + 0.25);
  return std::sqrt(2.0) * boost::math::erf_inv(2 * share - 1);
}

AcceleratorConfig slowest_of(const AcceleratorConfig& accelerator, double packages) {
  AcceleratorConfig slowest = accelerator;
  PowerConfig& power = slowest.power;
  const double more = 1 + power.spread.value * expected_largest(packages);
  if (more <= 1) return slowest;
  const Watts floor = power.floor();
  power.limit = power.limit.value_or(power.tdp);
  power.limit->value = floor + (power.cap() - floor) / more;
  return slowest;
}

}  // namespace orrery
