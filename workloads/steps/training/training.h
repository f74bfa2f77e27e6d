// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "sim/graph/program.h"
#include "workloads/layers/experts/expert_routing_config.h"
#include "workloads/plan/parallel_config.h"
#include "workloads/schedules/schedule.h"
#include "workloads/steps/training/fine_tuning.h"
#include "workloads/steps/training/optimizer/optimizer_config.h"
#include "workloads/steps/training/recompute.h"

namespace orrery {

/// One training step.
struct TrainingConfig {
  ParallelConfig parallel;
  std::int64_t global_batch = 1;      ///< sequences per step
  std::int64_t micro_batch = 1;       ///< sequences per pass on one data parallel rank
  std::int64_t sequence = 0;          ///< tokens of each sequence
  std::int64_t encoder_sequence = 0;  ///< those that an encoder reads; 0: as many
  Precision precision = Precision::kBf16;
  RecomputeConfig recompute;
  /// First layers of each chunk whose activations lie in the host's memory between their passes.
  int activation_offload = 0;
  OptimizerKind optimizer = OptimizerKind::kAdam;
  MuonConfig muon;
  OptimizerStates optimizer_states;
  /// Paged moments that a rank of each stage has no room for; none: all stay on the device.
  std::vector<Bytes> moments_on_host;
  OptimizerOffload optimizer_offload;
  bool gradient_clipping = true;  ///< whether their norm over all ranks scales them
  /// Whether weights of a layer are updated behind its backward pass, which frees its gradients.
  bool optimizer_in_backward = false;
  std::optional<TrainingLora> lora;  ///< adapters of a frozen model; none: all is trained
  PackedSamples packed;
  std::string schedule = kAutoSchedule;
  /// A schedule whose passes are given; null: the one of that name.
  std::shared_ptr<const PipelineSchedule> written = nullptr;
  int mtp = 0;                   ///< modules of multi-token prediction that train with the model
  int layers_only = 0;           ///< n > 0: n layers without embedding, head and optimizer
  bool sparse_weights = false;   ///< 2:4, of the dense matrices of layers
  bool narrow_inputs = false;    ///< products keep their inputs in fp8 for the backward pass
  double fp8_gradient_rate = 1;  ///< see RankWork::fp8_gradient_rate
  bool flash_attention = true;
  bool dropout = false;  ///< masks and kernels of hidden and attention dropout
  std::shared_ptr<const TrainingSoftware> software = default_software();  ///< never null
  /// How tokens are spread over experts; none: evenly. The heaviest rank sets the pace of all.
  std::optional<ExpertRoutingConfig> expert_routing;
  double expert_capacity = 0;  ///< see RankWork

  /// Passes of every stage and chunk in a step.
  std::int64_t micro_batches() const { return global_batch / (micro_batch * parallel.dp); }
};

/// What a step does on one rank in one pass of a layer, where ranks get even shares of the tokens.
RankWork rank_work(const TrainingConfig& config);
/// The same for the rank whose experts get the most.
RankWork rank_work(const LlmConfig& model, const TrainingConfig& config);

/// The model that is trained: `model` without its vision tower, cut to its first layers_only layers
/// where that is set.
LlmConfig trained_model(const LlmConfig& model, const TrainingConfig& config);

/// @throws config::ConfigError naming what does not divide, is out of range or is not modelled.
void require_supported(const LlmConfig& model, const TrainingConfig& config);

/// @throws config::KeyError at `schedule` for a name that is not registered.
const PipelineSchedule& schedule_of(const TrainingConfig& config);
PipelineShape pipeline_shape(const TrainingConfig& config);
/// Which slices of the model each stage holds under the schedule of `config`.
Placement placement_of(const TrainingConfig& config);

/// A step as a program. Roles are the pipeline stages in order, tp and dp folded; forward[stage]
/// and backward[stage] are the blocks of its passes (those of input and weight gradients, and
/// forwards beside them, are backward), optimizer[stage] the end of the step (empty with
/// layers_only).
struct TrainingProgram {
  Program program;
  std::vector<std::vector<BlockId>> forward;
  std::vector<std::vector<BlockId>> backward;
  std::vector<BlockId> optimizer;
};

/// @throws config::ConfigError as require_supported does.
/// @param tensors whether the program names what it keeps for its backward passes
/// (sim/graph/tensors.h)
TrainingProgram build_training(const LlmConfig& model, const TrainingConfig& config,
                               bool tensors = false);

}  // namespace orrery
