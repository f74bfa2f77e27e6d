// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "sim/results/run_record.h"
#include "tests/properties/random/experiments.h"

namespace orrery {

/// The value of a metric; NaN if the record does not have it.
double metric(const RunRecord& record, const std::string& name);

/// The text of a label; empty if the record does not have it.
std::string label(const RunRecord& record, const std::string& name);

/// The time of the step, or of the operator or collective.
double duration(const RunRecord& record);

/// Two named numbers as text.
std::string figures(const char* first, double a, const char* second, double b);

/// The result of an experiment, simulated in a process of its own.
RunRecord simulate_again(const RandomExperiment& experiment);

/// Assignments that put the power cap out of reach.
std::vector<std::string> without_cap(const MachineExperiment& experiment);

}  // namespace orrery
