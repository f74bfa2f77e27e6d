// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "sim/config/schema.h"
#include "sim/units/units.h"

namespace orrery {

/// Limits that keys of several parts of a machine share.
inline const config::Bounds kCount = config::between(1, 1e6);
inline const config::Bounds kFraction = config::between(1e-3, 1);
inline const config::Bounds kLatency = config::between(Seconds(0), Seconds(1));

}  // namespace orrery
