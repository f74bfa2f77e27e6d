// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "sim/graph/kernel.h"
#include "validation/importers/operator_table.h"

namespace orrery {

/// What the experts of the most loaded rank get in a row of the `moe` table, after AIConfigurator's
/// collector: "balanced" strides over the experts; "power_law_<a>" draws the load of each expert
/// from a density x^-a between 1 and 0.8 tokens, rounds, caps it at the number of tokens, mends the
/// sum rank by rank, and takes the rank with the largest load. The mean of seeded draws: what was
/// measured is the mean of five others.
ExpertLoad heaviest_rank(const OperatorRow& row);

}  // namespace orrery
