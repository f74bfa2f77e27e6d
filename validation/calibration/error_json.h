// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nlohmann/json.hpp>

#include "sim/machine/calibration.h"

namespace orrery {

inline nlohmann::ordered_json to_json(const ErrorSummary& e) {
  return {{"count", e.count}, {"mape", e.mape}, {"median", e.median},
          {"p90", e.p90},     {"bias", e.bias}, {"worst", e.worst}};
}

}  // namespace orrery
