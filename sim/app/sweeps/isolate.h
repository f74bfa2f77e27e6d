// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>
#include <variant>

#include "sim/app/experiments/exit_codes.h"

namespace orrery {

/// Runs `work` in a forked child and returns the text it returned, or how it failed. SystemC allows
/// one elaborated model per process (`sim/events/README.md`), so each point of a sweep gets a
/// process of its own; a crash costs one point. Fork from a process that is still small and has not
/// started SystemC.
std::variant<std::string, Failure> run_isolated(const std::function<std::string()>& work);

}  // namespace orrery
