// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <vector>

#include "sim/app/experiments/serving/fleet.h"
#include "sim/results/run_record.h"
#include "sim/serving/service.h"

namespace orrery {

/// Says what the memory of a group holds. False, and the record says why, where it has no block.
bool report_memory(const ServingGroup& group, const ServingMemory& memory, RunRecord& record);

/// Says once which versions the defaults of each engine come from.
void report_engines(const std::vector<ServingGroup>& groups, RunRecord& record);

/// The label of a run that was ended before all requests were answered.
bool was_stopped(const RunRecord& record);

/// Fills the metrics of a run: those of vLLM's benchmark (benchmarks/serve.py), and what a fleet
/// costs for them.
void report_serving(const ServingConfig& serving, const Service& service, const ServingLog& log,
                    const std::vector<Instance>& instances, RunRecord& record);

/// Says where the mean time of a request and the time of the instances of each group go, and what
/// the largest part of the former is: the queue, prefill, transfer of the cache or decode.
void explain_load(const ServingConfig& serving, const std::vector<Instance>& instances,
                  const ServingLog& log, const RunRecord& record,
                  nlohmann::ordered_json& explanation);

/// What caches that went from one instance to another took.
void report_handover(const Handover& handover, RunRecord& record);

}  // namespace orrery
