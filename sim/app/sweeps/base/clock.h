// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace orrery {

/// The time now: "2026-11-20T18:30:00.250Z".
std::string utc_now();

}  // namespace orrery
