// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>
#include <variant>

#include "sim/app/experiments/core/exit_codes.h"

namespace orrery {

/// Runs `work` in a process of its own and returns the text it returned, or how it failed: a crash
/// costs one piece of work. For many pieces of work see LocalWorkers.
std::variant<std::string, Failure> run_isolated(const std::function<std::string()>& work);

}  // namespace orrery
