// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "sim/app/cli/commands.h"

namespace orrery {

/// Prints how good the model of collectives is on rows that set none of its parameters, beside what
/// is demanded: measured tables by class of bytes, siblings by each other's parameters, published
/// rows by source.
ExitCode summarise_collectives(const CollectivesArguments& arguments);

}  // namespace orrery
