// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "sim/config/diagnostics.h"

namespace orrery {

/// What must hold of a plan.
/// @param paths the keys that say otherwise, from the top of an experiment
/// @throws config::KeyError
inline void require(bool holds, std::vector<std::string> paths, const std::string& message,
                    config::Advice advice = {}) {
  if (!holds) throw config::KeyError(std::move(paths), message, std::move(advice));
}
inline void require(bool holds, const char* path, const std::string& message,
                    config::Advice advice = {}) {
  if (!holds) throw config::KeyError(path, message, std::move(advice));
}

/// Advice for a size that has to be split evenly: the divisor nearest to `ways`, the larger of two,
/// and all of them.
config::Advice divisors_near(std::int64_t size, std::int64_t ways);

/// What must hold so that `ways` ranks share `size` of `what` evenly.
/// @param key the ranks, below `parallel`
void require_divides(std::int64_t size, int ways, const char* key, const char* what);

}  // namespace orrery
