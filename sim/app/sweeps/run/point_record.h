// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "sim/app/sweeps/plan/plan_cursor.h"
#include "sim/results/run_record.h"

namespace orrery {

/// Fills in what a record has of a point beside its result.
void describe(const PlanCursor& at, RunRecord& record);

/// The record of a point that has no result, for some reason.
RunRecord without_result(const PlanCursor& at, RunStatus status, std::string reason);

}  // namespace orrery
