// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "models/collectives/algorithm.h"
#include "sim/results/answer.h"

namespace orrery {

/// The collectives that an algorithm serves on some machine: "all_gather, reduce_scatter".
std::string served_kinds(const CollectiveAlgorithm& algorithm);

/// A table of them: dependent steps on an example inside a system and one between systems, and what
/// the fabric must be able to do.
Answer served_steps(const CollectiveAlgorithm& algorithm);

}  // namespace orrery
