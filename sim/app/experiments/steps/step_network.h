// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include "sim/app/experiments/steps/step_experiment.h"
#include "sim/app/pricing/engine_network.h"
#include "sim/app/pricing/machine_network.h"

namespace orrery {

/// The links of a step's machine, and what its collectives take on them.
class StepNetwork {
 public:
  /// @param experiment has to outlive it
  explicit StepNetwork(const StepExperiment& experiment);

  const MachineNetwork& links() const { return links_; }
  /// Prices with the faults that are there from the start.
  const Network& start() const {
    return engine_ ? static_cast<const Network&>(*engine_) : links_.start();
  }

 private:
  MachineNetwork links_;
  std::optional<EngineNetwork> engine_;
};

}  // namespace orrery
