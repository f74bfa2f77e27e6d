// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "sim/app/experiments/core/experiment.h"
#include "sim/app/experiments/core/simulate.h"
#include "sim/app/experiments/serving/fleet.h"
#include "sim/app/experiments/serving/trust.h"
#include "sim/serving/serving_log.h"
#include "workloads/models/config/model_config.h"

namespace orrery {

struct ServingExperiment final : Experiment {
  ServingExperiment() { kind = "serving"; }

  ModelConfig model;
  ServingConfig serving;
  Fidelity fidelity = Fidelity::kAuto;
  std::vector<FilePath> measured;  ///< operator tables whose times override the model
  static const config::Schema<ServingExperiment>& schema();

  void bind_machines() override;
  void share_machines(const std::shared_ptr<const Experiment>& other) override;
  bool of_machines(const std::string& path) const override;
  std::vector<std::string> followed() const override;
  std::vector<std::string> known_errors() const override {
    return orrery::known_errors(serving.fleet, kind);
  }

  bool has_experts() const override;
  void complete(config::Node& node, config::Diagnostics& diagnostics) override;
  void check_names(const config::Node& node, config::Diagnostics& diagnostics) const override;
  void check(const config::Node& node, config::Diagnostics& diagnostics) const override;
  std::vector<InputFile> input_files() const override;
  void strip_names(nlohmann::ordered_json& configuration) const override;
  void check_plan(const config::Node& node, config::Diagnostics& diagnostics) const override;
  void run(const SimulateOptions& options, RunRecord& record) const override;
  void explain(const KnownReplay& replay, nlohmann::ordered_json& explanation) const override;
  bool is_quick() const override { return false; }
  TableView table() const override;

  ServingFleet fleet() const;
  /// Serves the workload on a fleet that may have served others before, and fills the record.
  /// @param fleet made of groups that differ from those here in schedulers and replicas alone: not
  /// in what prices rest on (all_reduce, quant_fusion)
  /// @param options of which the watch and the file for a timeline count
  void serve(const ServingFleet& fleet, RunRecord& record,
             const SimulateOptions& options = {}) const;
  /// The same, with what times rest on and p10 to p90 of every metric: serves two times more.
  void serve_with_intervals(const ServingFleet& fleet, RunRecord& record,
                            const SimulateOptions& options = {}) const;

 private:
  /// The instances once they have served; none where there was no memory for them.
  struct Served {
    std::vector<Instance> instances;
    ServingLog log;
  };
  Served serve(const ServingFleet& fleet, const std::vector<Slowness>& slowness, RunRecord& record,
               const SimulateOptions& options) const;
  void report_trust(const ServingFleet& fleet, const std::vector<Instance>& instances,
                    RunRecord& record, const SimulateOptions& options) const;
  std::string calibrations() const;

  std::vector<std::shared_ptr<const Machine>> machines_;  ///< machine of each group
};

}  // namespace orrery
