// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "sim/units/units.h"
#include "workloads/models/llm_config.h"
#include "workloads/steps/training/training.h"

namespace orrery {

/// A change of an experiment, and what the fullest rank needs with it.
struct FittingChange {
  /// The keys to write: "recompute: full". Two changes are joined by " and ".
  std::string text;
  Bytes needs;
};

/// What a rank has beside its step.
struct FittingRoom {
  Bytes usable;
  bool host = false;  ///< a link to a host board
};

/// Changes of a training step on the same ranks that make it fit, by the memory model.
struct FittingChanges {
  /// Single changes, in this order: ZeRO level, activation precision, optimizer state formats,
  /// optimizer offload, recomputation (from the modules with the fewest FLOPs to all layers),
  /// micro-batch size, and plans with fewer replicas. Recomputation of layers lists the fewest
  /// layers.
  std::vector<FittingChange> alone;
  /// At most three pairs of changes. Only filled if no single change is enough.
  std::vector<FittingChange> pairs;
};
FittingChanges fitting_changes(const LlmConfig& model, const TrainingConfig& config,
                               const FittingRoom& room);

/// "; fits with, each alone: recompute: full (61.0 GB), ...", "; fits with two changes: ...", or a
/// sentence that neither single changes nor pairs are enough.
std::string fitting_text(const FittingChanges& changes);

}  // namespace orrery
