// SPDX-License-Identifier: Apache-2.0
#include "sim/machine/die_spread.h"

#include <boost/math/special_functions/erf.hpp>
#include <cmath>

namespace orrery {

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
