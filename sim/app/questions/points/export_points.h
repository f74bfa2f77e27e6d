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

/// The text of an experiment file that `orrery run` repeats a result from: every value of its
/// configuration that is no default, with units; files that it names by where they are.
/// @throws UsageError for a result without configuration, or of a kind that there is no longer
std::string reproduction(const RunRecord& record);

/// What is in the way of the same result: another engine, a file that changed; empty: nothing.
/// @param file that reproduction() was written to
std::string obstacle_to(const RunRecord& record, const std::string& file);

}  // namespace orrery
