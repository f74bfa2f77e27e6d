// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <utility>

#include "sim/app/experiments/steps/step_experiment.h"
#include "workloads/layers/listed/layer_model.h"
#include "workloads/layers/listed/layer_step.h"

namespace orrery {

/// What a step of a list of layers is for.
enum class LayersPhase : std::uint8_t { kInference, kTraining };

struct LayersExperiment final : StepExperiment {
  LayersExperiment() { kind = "layers"; }

  LayerModelConfig model;
  LayersPhase phase = LayersPhase::kInference;
  std::int64_t batch = 1;  ///< samples of a rank
  int dp = 1;
  bool fused = true;  ///< inference: see LayerGraphBuilder::finish()
  OptimizerKind optimizer = OptimizerKind::kSgd;
  static const config::Schema<LayersExperiment>& schema();

  int ranks() const override { return dp; }
  Program program() const override { return layer_program(build(), step()); }
  std::string part_of(const Kernel& kernel) const override;
  LayerStepConfig step() const { return {.dp = dp, .optimizer = optimizer}; }
  /// What a rank needs of its device memory: where the device has flash, weights of inference are
  /// there.
  MemoryUse memory(const LayerGraph& graph) const;

  void check(const config::Node& node, config::Diagnostics& diagnostics) const override;
  void strip_names(nlohmann::ordered_json& configuration) const override;
  void check_plan(const config::Node& node, config::Diagnostics& diagnostics) const override;
  void run(const SimulateOptions& options, RunRecord& record) const override;
  void explain(const KnownReplay& replay, nlohmann::ordered_json& explanation) const override;
  TableView table() const override;

 private:
  /// @throws config::KeyError at `layer_model.layers...`
  LayerGraph build() const;
  /// With the layers on arrays of their own, where the device maps them so.
  Program mapped(Program program) const;
  bool has_flash() const;
  /// Whether weights fit into the flash of a device that has some.
  bool check_flash(const LayerGraph& graph, RunRecord& record) const;
};

}  // namespace orrery

namespace orrery::config {

template <>
struct EnumNames<LayersPhase> {
  static constexpr std::pair<LayersPhase, const char*> values[] = {
      {LayersPhase::kInference, "inference"}, {LayersPhase::kTraining, "training"}};
};

}  // namespace orrery::config
