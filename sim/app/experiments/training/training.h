// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "sim/app/experiments/steps/model_experiment.h"
#include "workloads/models/sparsity.h"
#include "workloads/operators/cache_format.h"
#include "workloads/schedules/written.h"
#include "workloads/software/training_software.h"
#include "workloads/steps/training/training.h"

namespace orrery {

/// One training step.
struct TrainingExperiment final : ModelExperiment {
  TrainingExperiment() {
    kind = "training";
    memory_reserve = kTrainingReserve;
  }
  /// CUDA's context, libraries and a communicator take 1.53 to 1.55 of the 79.19 GiB of an H100
  /// before anything is loaded (starts of vLLM 0.19 at tp 2 and 4, llm-d-planner d3121e0); gaps
  /// between tensors stand in reserved_memory_bytes.
  static constexpr double kTrainingReserve = 0.02;

  ScheduleConfig schedule;
  int mtp = 0;
  int layers_only = 0;
  std::optional<CacheFormat> activation_precision;  ///< none: as the software keeps them
  RecomputeConfig recompute;
  int activation_offload = 0;
  OptimizerKind optimizer = OptimizerKind::kAdam;
  MuonConfig muon;
  OptimizerStates optimizer_states;
  OptimizerOffload optimizer_offload;
  bool gradient_clipping = true;
  bool optimizer_in_backward = false;
  Sparsity sparsity = Sparsity::kDense;
  std::optional<TrainingLora> lora;
  PackedSamples packed;
  bool flash_attention = true;
  bool dropout = false;
  TrainingSoftware software;
  std::optional<ExpertRoutingConfig> expert_routing;
  double expert_capacity = 0;
  static const config::Schema<TrainingExperiment>& schema();

  /// The step under the plan of the experiment.
  TrainingConfig training() const { return training(parallel); }
  TrainingConfig training(const ParallelConfig& plan) const;
  /// Paged moments of each stage that go to the host so that the rest fits.
  std::vector<Bytes> moments_without_room(const TrainingConfig& config) const;

  std::vector<MemoryUse> memory(const LlmConfig& llm, const ParallelConfig& plan) const override;
  std::string fitting_text() const override;
  void bind_machines() override;
  bool of_machines(const std::string& path) const override;
  void require_plan(const LlmConfig& llm) const override;
  ModelStep step(const LlmConfig& llm) const override;
  std::vector<InputFile> input_files() const override;
  std::string batch_text() const override { return std::to_string(batch.global); }
  void complete(config::Node& node, config::Diagnostics& diagnostics) override;
  void check_names(const config::Node& node, config::Diagnostics& diagnostics) const override;
  void check(const config::Node& node, config::Diagnostics& diagnostics) const override;
  void check_plan(const config::Node& node, config::Diagnostics& diagnostics) const override;
  void strip_names(nlohmann::ordered_json& configuration) const override;
  void explain(const KnownReplay& replay, nlohmann::ordered_json& explanation) const override;
  void run(const SimulateOptions& options, RunRecord& record) const override;
};

}  // namespace orrery
