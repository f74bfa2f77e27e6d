// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "sim/units/units.h"
#include "workloads/llm/llm_config.h"
#include "workloads/training/training.h"

namespace orrery {

/// A change of an experiment, and what the fullest rank needs with it.
struct FittingChange {
  std::string text;  ///< "recompute: full": keys as they are written; of two, joined by " and "
  Bytes needs;
};

/// What a rank has beside its step.
struct FittingRoom {
  Bytes usable;
  bool host = false;  ///< a link to a host board
};

/// Changes of a training step on the same ranks that make it fit, by the memory model.
struct FittingChanges {
  /// Each alone: those that cost no time first, then formats of the optimizer's states, what lies
  /// on the host, recomputation, from the parts with the fewest FLOPs to all layers, smaller
  /// micro-batches, and plans with fewer replicas. Of layers that are recomputed, the fewest.
  std::vector<FittingChange> alone;
  /// Where none does alone: two together, at most three of them.
  std::vector<FittingChange> pairs;
};
FittingChanges fitting_changes(const LlmConfig& model, const TrainingConfig& config,
                               const FittingRoom& room);

/// "; fits with, each alone: recompute: full (61.0 GB), ...", or "; fits with two changes: ...", or
/// that none does.
std::string fitting_text(const FittingChanges& changes);

}  // namespace orrery
