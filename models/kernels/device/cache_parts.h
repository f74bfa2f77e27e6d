// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "sim/machine/accelerator_config.h"

namespace orrery {

inline constexpr double kMicro = 1e6;  ///< microseconds in a second

/// What the parts of a last cache cost a die (CacheConfig). Addresses are spread over all parts, so
/// that of p of them (p - 1) / p of what a unit reads is not in its own.

/// Bytes/us that the way between the parts lets units read together, of whatever part; infinite
/// where nothing is known of it, and with one part.
double crossing_rate(const AcceleratorConfig& accelerator);

/// Bytes/us of the memory that reach the units: each byte comes by the part that its channel
/// belongs to.
double memory_rate(const AcceleratorConfig& accelerator);

/// Bytes/us that units find in the cache together, at most `near` where all lie in their own part.
/// Parts that keep copies of each other's data are such.
double cache_hit_rate(const AcceleratorConfig& accelerator, double near);

/// us by which a read takes longer on average than from the unit's own part.
double far_wait_us(const AcceleratorConfig& accelerator);

/// How often data that all units read lie in the cache, and so fill it.
double cache_copies(const AcceleratorConfig& accelerator);

}  // namespace orrery
