// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "sim/app/experiments/core/exit_codes.h"

namespace orrery {

/// Prints how good the model of collectives is on rows that set none of its parameters, beside what
/// is demanded: measured tables by class of bytes, siblings by each other's parameters, published
/// rows by source.
/// @param files tables of measured collectives
ExitCode summarise_collectives(const std::vector<std::string>& files, bool json);

}  // namespace orrery
