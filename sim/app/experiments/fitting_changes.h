// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "sim/units/units.h"
#include "workloads/llm/llm_config.h"
#include "workloads/training/training.h"

namespace orrery {

/// A change of one thing in an experiment, and what the fullest rank needs with it.
struct FittingChange {
  std::string text;  ///< "recompute: full": keys as they are written
  Bytes needs;
};

/// What a rank has beside its step.
struct FittingRoom {
  Bytes usable;
  bool host = false;  ///< a link to a host board
};

/// Changes of a training step on the same ranks that make it fit, each alone, by the memory model:
/// those that cost no time first, then recomputation, from the parts with the fewest FLOPs to all
/// layers, then smaller micro-batches, then plans with fewer replicas. Of layers that are
/// recomputed, the fewest.
std::vector<FittingChange> fitting_changes(const LlmConfig& model, const TrainingConfig& config,
                                           const FittingRoom& room);

/// "; fits with, each alone: recompute: full (61.0 GB), ...", or that none does.
std::string fitting_text(const std::vector<FittingChange>& changes);

}  // namespace orrery
