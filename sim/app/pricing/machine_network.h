// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "models/transfers/flow_model.h"
#include "sim/app/pricing/machine.h"
#include "sim/config/declared.h"
#include "sim/graph/images.h"
#include "sim/graph/program.h"

namespace orrery {

/// Links that degrade, fail or come back.
struct FaultConfig {
  std::string link;     ///< name, glob or class: see LinkStates
  Seconds at;           ///< time from which on the fault holds
  double capacity = 0;  ///< share of the healthy capacity that is then left; 0: down, 1: whole
  static const config::Schema<FaultConfig>& schema();
};

/// How a collective is to be done: algorithms as FlowModel takes them, and a protocol or "auto".
struct CollectiveChoice {
  std::vector<std::string> algorithms = {};
  std::string protocol = "auto";
};

/// The links of a machine, as faults leave them in the course of a run.
class MachineNetwork {
 public:
  /// @param machine has to outlive it
  /// @param faults those of one time apply in order
  /// @throws config::ConfigError as FlowModel(), and for a fault that names no link.
  explicit MachineNetwork(const Machine& machine, const std::vector<FaultConfig>& faults = {},
                          const CollectiveChoice& choice = {});

  /// With the faults that are there from the start.
  const FlowModel& start() const { return *start_; }
  std::span<const LinkFault> faults_at_start() const { return states_.front().faults; }

  /// Adds what happens to links during the run to the costs of a program that was priced with
  /// start(): their capacities, and the ways of the transfers that change theirs. Algorithms,
  /// protocols and latencies stay those of the start.
  /// @param images the costs of transfers are by image; null: by transfer
  void add_link_events(const Program& program, const std::vector<PricedTransfer>& priced,
                       Costs& costs, const Images* images = nullptr) const;

 private:
  /// From `time` to that of the next state.
  struct State {
    Picoseconds time = 0;
    std::vector<LinkFault> faults;
  };

  const Machine& machine_;
  std::vector<State> states_;  ///< the first at 0
  std::unique_ptr<FlowModel> start_;
};

/// Complains about faults that name no link.
/// @param node the configuration that has them under `faults`
void check_faults(const Machine& machine, const std::vector<FaultConfig>& faults,
                  const config::Node& node, config::Diagnostics& diagnostics);

}  // namespace orrery
