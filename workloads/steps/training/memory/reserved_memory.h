// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "sim/units/units.h"
#include "workloads/steps/training/training.h"

namespace orrery {

/// What a rank of a stage holds between passes.
struct StageStates {
  Bytes weights, gradients, optimizer;
};

/// What PyTorch's allocator has taken of the device after some steps of a stage: tensors with their
/// sizes in the order in which passes make and free them go through CachingAllocator. The states of
/// the optimizer come at the end of the first step, into blocks that its activations have left.
/// @param model what is trained (trained_model)
Bytes reserved_memory(const LlmConfig& model, const TrainingConfig& config, int stage,
                      const StageStates& states);

}  // namespace orrery
