// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <vector>

#include "sim/app/experiments/collective_config.h"
#include "sim/app/experiments/experiment.h"
#include "sim/app/experiments/link_keys.h"

namespace orrery {

/// One collective on part of a machine.
struct CollectiveExperiment final : MachineExperiment, LinkKeys {
  CollectiveExperiment() { kind = "collective"; }

  std::optional<CollectiveConfig> collective;
  static const config::Schema<CollectiveExperiment>& schema();

  void complete(config::Node& node, config::Diagnostics& diagnostics) override;
  void check(const config::Node& node, config::Diagnostics& diagnostics) const override;
  void check_machine(const config::Node& node, config::Diagnostics& diagnostics) const override;
  std::vector<InputFile> input_files() const override;
  void strip_names(nlohmann::ordered_json& configuration) const override;
  void check_plan(const config::Node&, config::Diagnostics&) const override {}
  void check_network() const override;
  void run(const SimulateOptions& options, RunRecord& record) const override;
  TableView table() const override;
};

}  // namespace orrery
