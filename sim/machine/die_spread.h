// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "sim/machine/accelerator_config.h"

namespace orrery {

/// The largest of `count` draws of the standard normal distribution, on average (Blom 1958); 0 for
/// one draw.
double expected_largest(double count);

/// Dies of a kind need different energies for the same work (power.spread), and those that work in
/// step wait for the one whose clock the cap lowers most. The device of ordinary energies under the
/// cap that this one of `packages` leaves it: floor + (cap - floor) / (1 + spread x
/// expected_largest(packages)).
AcceleratorConfig slowest_of(const AcceleratorConfig& accelerator, double packages);

}  // namespace orrery
