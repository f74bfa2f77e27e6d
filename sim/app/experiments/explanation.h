// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <vector>

#include "sim/app/pricing/pricing.h"
#include "sim/graph/topology.h"
#include "sim/replay/critical_path.h"
#include "workloads/llm/llm_config.h"
#include "workloads/memory.h"

namespace orrery {

class KnownReplay;
struct ModelExperiment;
struct ModelStep;
struct StepExperiment;

/// One kernel: how often, what limits it and how close it comes to that, how long, at which clock.
/// A clock that power took away makes no other limit.
nlohmann::ordered_json explain_kernel(const Kernel& kernel, const KernelCost& cost,
                                      std::uint64_t count, const AcceleratorConfig& accelerator);

/// Kernels of one role.
nlohmann::ordered_json explain_kernels(const Program& program, const Role& role, const Costs& costs,
                                       const AcceleratorConfig& accelerator);

/// Transfers of one role, as if each were alone on the machine.
nlohmann::ordered_json explain_transfers(const Program& program, const Role& role,
                                         const PricedProgram& priced, const Topology& topology);

/// The critical path of a step: its time by part (kernels by part of the model, contention, host,
/// transfers by kind and group) and by stage, each adding up to the end of the replay.
nlohmann::ordered_json explain_path(const Program& program, const std::vector<PathStep>& path);

/// Adds the kernels and transfers of the role that ends last, and the critical path.
void explain_program(const StepExperiment& experiment, const Program& program,
                     const KnownReplay& replay, nlohmann::ordered_json& explanation);

/// The memory of the fullest rank by part, beside what it may use.
nlohmann::ordered_json explain_memory(const MemoryUse& use, const StepExperiment& experiment);

/// Parameters, FLOPs, bytes and the memory of a rank.
nlohmann::ordered_json explain_sizes(const ModelExperiment& experiment, const LlmConfig& llm,
                                     const ModelStep& step);

}  // namespace orrery
