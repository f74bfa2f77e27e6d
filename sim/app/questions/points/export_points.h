// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "sim/app/questions/points/stored_points.h"

namespace orrery {

/// All results of a store by identity, without times of their runs. Failures are no results: they
/// are told where the condition speaks of `status`.
/// @param write is given a row of cells, titles first
void export_rows(const StoreChoice& choice,
                 const std::function<void(const std::vector<std::string>& cells)>& write);
/// The same as one JSON object a result. @param write is given a line without its end
void export_lines(const StoreChoice& choice,
                  const std::function<void(const std::string& line)>& write);

/// The one point of a store that a word stands for: the begin of an identity, or a name.
/// @throws UsageError where there is none, or more than one
RunRecord find_point(const ResultStore& store, const std::string& word);

}  // namespace orrery
