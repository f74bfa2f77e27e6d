// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "models/transfers/flow_model.h"
#include "sim/app/experiments/experiment.h"
#include "sim/graph/program.h"

namespace orrery {

/// The links of an experiment's machine, as its faults leave them in the course of the run.
class ExperimentNetwork {
 public:
  /// @param algorithm, protocol as FlowModel()
  /// @throws config::ConfigError as FlowModel(), and for a fault that names no link.
  explicit ExperimentNetwork(const Experiment& experiment, const std::string& algorithm = "auto",
                             const std::string& protocol = "auto");

  /// With the faults that are there from the start.
  const FlowModel& start() const { return *start_; }

  /// Adds what happens to links during the run to the costs of a program that was priced with
  /// start(): their capacities, and the ways of the transfers that change theirs. Algorithms,
  /// protocols and latencies stay those of the start.
  void add_link_events(const Program& program, const std::vector<PricedTransfer>& priced,
                       Costs& costs) const;

 private:
  /// From `time` to that of the next state.
  struct State {
    Picoseconds time = 0;
    std::vector<LinkFault> faults;
  };

  const Experiment& experiment_;
  std::vector<State> states_;  ///< the first at 0
  std::unique_ptr<FlowModel> start_;
};

/// Complains about faults that name no link.
void check_faults(const Experiment& experiment, const config::Node& node,
                  config::Diagnostics& diagnostics);

}  // namespace orrery
