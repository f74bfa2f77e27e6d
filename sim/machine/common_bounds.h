// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "sim/config/schema.h"
#include "sim/units/units.h"

namespace orrery {

/// Limits that keys of several parts of a machine share.
inline const config::Bounds kCountLimits = config::between(1, 1e6);
inline const config::Bounds kFractionLimits = config::between(1e-3, 1);
inline const config::Bounds kLatencyLimits = config::between(Seconds(0), Seconds(1));

}  // namespace orrery
