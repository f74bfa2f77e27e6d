// SPDX-License-Identifier: Apache-2.0
#include "models/kernels/device/unit_clock.h"

#include <cmath>

#include "sim/machine/clock.h"

namespace orrery {
namespace {

double exponentials_of_clock(const AcceleratorConfig& a) {
  constexpr double kVectorFlops = 16;
  const double rate = a.compute.special ? a.compute.special->value.base()
                                        : a.compute.vector.value.base() / kVectorFlops;
  return rate / (a.compute.units.value * boost_clock(a).base());
}

}  // namespace

double fitted_exponentials_us(const AcceleratorConfig& accelerator) {
  return 16 * accelerator.compute.clock.value.base() / 1e6;
}

double exponentials_over(const AcceleratorConfig& a, const AcceleratorConfig& b) {
  constexpr double kRounding = 1e-3;  // of data sheets
  const double ratio = exponentials_of_clock(a) / exponentials_of_clock(b);
  return std::abs(ratio - 1) < kRounding ? 1 : ratio;
}

double unit_kclk_us(const AcceleratorConfig& accelerator) {
  constexpr double kBytesPerClock = 128;
  const double clock = accelerator.compute.clock.value.base();
  if (!accelerator.core) return 1e9 / clock;
  const double shared = accelerator.core->shared_bandwidth.value.base() / kBytesPerClock;
  // By the clock itself where the width is about that, so that another clock alone shows.
  const bool same = shared > 0.5 * clock && shared < 1.5 * clock;
  return 1e9 / (same || shared == 0 ? clock : shared);
}

}  // namespace orrery
