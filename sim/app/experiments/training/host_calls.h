// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "sim/app/pricing/pricing.h"
#include "sim/graph/program.h"
#include "workloads/software/training_software.h"

namespace orrery {

/// Adds what calls by the host take to all-reduces whose groups stay inside systems of `ranks`.
void call_from_host(const TrainingSoftware& software, int ranks, const Program& program,
                    PricedProgram& priced);

}  // namespace orrery
