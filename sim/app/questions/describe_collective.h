// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "models/collectives/algorithm.h"

namespace orrery {

/// The collectives that an algorithm serves on some machine: "all_gather, reduce_scatter".
std::string served_kinds(const CollectiveAlgorithm& algorithm);

/// A table of them: dependent steps on an example inside a system and one between systems, and what
/// the fabric must be able to do.
std::string served_steps(const CollectiveAlgorithm& algorithm);

}  // namespace orrery
