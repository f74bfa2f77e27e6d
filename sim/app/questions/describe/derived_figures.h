// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

#include "sim/machine/accelerator_config.h"
#include "sim/results/answer.h"

namespace orrery {

/// What follows from the values of an accelerator, in lines and as members to add to its JSON
/// object:
///  - `word_cost`: the multiply-adds that a 32-bit word of memory costs (energy_rule.h), where the
///    device has energy.multiply_add;
///  - `part`: units, rates and memory of the part of a device, where it has a partition; the values
///    themselves are those of the whole.
Answer derived_figures(const AcceleratorConfig& accelerator);

/// Whether a value of an accelerator is a sentence, which is printed below the table of its values.
bool is_remark(std::string_view path);

}  // namespace orrery
