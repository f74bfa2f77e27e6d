// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace orrery {

/// A count as a factor of FLOPs or bytes; exact up to 2^53.
constexpr double real(std::int64_t count) { return static_cast<double>(count); }

}  // namespace orrery
