// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "workloads/steps/figures/memory.h"

namespace orrery {

/// What a part of the model takes of the memory of a rank.
struct ModuleMemory {
  std::string module;     ///< name of module_of(), or "MTP"
  double parameters = 0;  ///< those that the rank has, before replicas share them out
  Bytes weights, gradients, optimizer, activations;
};

/// The memory of a rank of a stage by part of the model, the largest first; norms belong to the
/// block behind them, the input of a layer to attention. Each column adds up to what `use` has:
/// shares of replicas are dealt out by parameters, activations as they are after the fullest pass.
/// Empty for adapters of a frozen model.
/// @param use that of the stage, of training_memory()
std::vector<ModuleMemory> module_memory(const LlmConfig& model, const TrainingConfig& config,
                                        int stage, const MemoryUse& use);

}  // namespace orrery
