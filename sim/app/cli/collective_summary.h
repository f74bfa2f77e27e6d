// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "sim/results/answer.h"

namespace orrery {

/// Tells how good the model of collectives is on rows that set none of its parameters, beside what
/// is demanded: measured tables by class of bytes, siblings by each other's parameters, published
/// rows by source.
/// @param files tables of measured collectives
Answer summarise_collectives(const std::vector<std::string>& files);

}  // namespace orrery
