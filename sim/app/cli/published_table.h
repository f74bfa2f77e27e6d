// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "sim/results/table.h"
#include "validation/checks/published_comparison.h"

namespace orrery {

/// YAML files of published rows below a folder of `validation`, by name.
std::vector<std::string> shipped_rows(const std::string& folder);

/// compare_published() with progress on standard error.
std::vector<PublishedComparison> compare_with_progress(const std::vector<std::string>& files);

/// Errors of each source, a row each.
Table source_table(const std::vector<PublishedSummary>& sources);

}  // namespace orrery
