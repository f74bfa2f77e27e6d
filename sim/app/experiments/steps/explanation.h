// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>

#include "sim/app/pricing/pricing.h"
#include "workloads/steps/figures/memory.h"

namespace orrery {

class KnownReplay;
struct StepExperiment;

/// One kernel: how often, what limits it and how close it comes to that, how long, at which clock.
/// A clock that power took away makes no other limit.
nlohmann::ordered_json explain_kernel(const Kernel& kernel, const KernelCost& cost,
                                      std::uint64_t count, const AcceleratorConfig& accelerator);

/// Adds the kernels of the role that ends last, with the part of the model that they are of, its
/// transfers as if each were alone on the machine, and the critical path: its time by part (kernels
/// by part of the model, contention, host, transfers by kind and group) and by stage, each adding
/// up to the end of the replay.
void explain_program(const StepExperiment& experiment, const Program& program,
                     const KnownReplay& replay, nlohmann::ordered_json& explanation);

struct StepSizes {
  std::int64_t parameters = 0, active_parameters = 0;  ///< active: used by one token or sample
  Flops model_flops;
  MemoryUse memory;  ///< memory of the fullest rank
};
nlohmann::ordered_json explain_sizes(const StepExperiment& experiment, const StepSizes& sizes,
                                     const Program& program);

}  // namespace orrery
