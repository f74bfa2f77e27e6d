// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "sim/app/experiments/serving/config.h"
#include "sim/results/run_record.h"
#include "sim/serving/steady_window.h"

namespace orrery {

/// Whether figures of the steady window stand for a run: requests arrive for three mean lifetimes
/// at least, and 20 of them in the window, whose ends cut off a request each.
/// @param log has at least one answer
bool is_steady(const SteadyWindow& window, const ServingLog& log);

/// Fills the metrics `steady_*` of throughput, goodput and times, or says why there are none.
void report_steady(const ServingConfig& serving, const SteadyWindow& window, const ServingLog& log,
                   RunRecord& record);

/// Output tokens inside the window; those of a request are spread evenly from its first to its
/// last.
double steady_output_tokens(const SteadyWindow& window, const ServingLog& log);

}  // namespace orrery
