// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "validation/checks/published_comparison.h"

namespace orrery {

/// Prints the errors of each source, a line each, to standard output.
void print_sources(const std::vector<PublishedSummary>& sources);

}  // namespace orrery
