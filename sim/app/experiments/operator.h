// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <vector>

#include "sim/app/experiments/core/experiment.h"
#include "sim/app/experiments/keys/enum_names.h"
#include "workloads/operators/operator.h"

namespace orrery {

/// What runs beside an operator and what it leaves to its kernels.
struct OperatorContention {
  double units = 1;   ///< share of the SMs
  double memory = 1;  ///< share of the memory bandwidth
  static const config::Schema<OperatorContention>& schema();
};

struct OperatorExperiment final : MachineExperiment {
  OperatorExperiment() { kind = "operator"; }

  std::optional<config::OneOf<OperatorConfig>> op;
  Precision precision = Precision::kBf16;
  Precision products() const override { return precision; }
  Fidelity fidelity = Fidelity::kAuto;
  std::vector<FilePath> measured;  ///< operator tables whose times override the model
  OperatorContention contention;
  static const config::Schema<OperatorExperiment>& schema();

  KernelChoice kernel_choice() const {
    return {fidelity, {contention.units, contention.memory}, measured};
  }

  Machine::Part part() const override { return Machine::Part::kAccelerator; }
  void check(const config::Node& node, config::Diagnostics& diagnostics) const override;
  void check_machine(const config::Node& node, config::Diagnostics& diagnostics) const override;
  std::vector<InputFile> input_files() const override;
  void check_plan(const config::Node& node, config::Diagnostics& diagnostics) const override;
  void run(const SimulateOptions& options, RunRecord& record) const override;
  void explain(const KnownReplay& replay, nlohmann::ordered_json& explanation) const override;
  TableView table() const override;
};

}  // namespace orrery
