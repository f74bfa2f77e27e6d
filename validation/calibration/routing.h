// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "validation/importers/operator_table.h"

namespace orrery {

/// What the most loaded rank of a mixture of experts gets.
struct RankLoad {
  double experts = 0;  ///< with at least one token
  double rows = 0;     ///< token copies
};

/// Of a row of the `moe` table. "balanced" deals token copies out evenly; "power_law_<a>" draws the
/// load of each expert from a density x^-a between 1 and 0.8 tokens (AIConfigurator's collector),
/// takes the rank with the largest sum, and averages five seeded draws, as was measured.
RankLoad heaviest_rank(const OperatorRow& row);

}  // namespace orrery
