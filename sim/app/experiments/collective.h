// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "sim/app/experiments/collective_config.h"
#include "sim/app/experiments/core/experiment.h"
#include "sim/app/experiments/keys/link_keys.h"
#include "sim/app/pricing/machine_network.h"
#include "sim/serving/scheduler.h"

namespace orrery {

struct CollectiveExperiment final : MachineExperiment, LinkKeys {
  CollectiveExperiment() { kind = "collective"; }

  std::optional<CollectiveConfig> collective;
  /// The engine that carries an all-reduce with its kernels. Without one NCCL carries it.
  std::optional<config::OneOf<SchedulerConfig>> engine;
  std::string engine_defaults;  ///< see follow_release()
  static const config::Schema<CollectiveExperiment>& schema();

  void complete(config::Node& node, config::Diagnostics& diagnostics) override;
  void check_names(const config::Node& node, config::Diagnostics& diagnostics) const override;
  void check(const config::Node& node, config::Diagnostics& diagnostics) const override;
  void check_machine(const config::Node& node, config::Diagnostics& diagnostics) const override;
  std::vector<InputFile> input_files() const override;
  void strip_names(nlohmann::ordered_json& configuration) const override;
  void check_plan(const config::Node&, config::Diagnostics&) const override {}
  void check_network() const override;
  void run(const SimulateOptions& options, RunRecord& record) const override;
  TableView table() const override;

 private:
  PricedTransfer price(const MachineNetwork& links, const Transfer& transfer) const;
};

}  // namespace orrery
