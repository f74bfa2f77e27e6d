// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "workloads/plan/program_builder.h"
#include "workloads/steps/training/replica_sync.h"

namespace orrery {

/// Which passes of a chunk take part in a collective over replicas.
enum class SyncPasses : std::uint8_t { kNone, kOne, kEvery };

/// Forward passes that gather weights: the first one where they stay, else every one.
SyncPasses gathering_passes(const LlmConfig& model, const TrainingConfig& config);
/// Whether backward passes gather weights again, which were dropped behind forward passes.
bool gathers_again(const TrainingConfig& config);
/// Passes with gradients of weights that reduce them beside what follows: the last one, or every
/// one.
SyncPasses reducing_passes(const LlmConfig& model, const TrainingConfig& config);
/// Whether each micro-batch's gradients leave the rank, so that products have nothing to add to.
bool has_fresh_gradients(const TrainingConfig& config);

/// What the host takes for the parts of all ranks of so many tensors that are gathered or reduced,
/// where it copies what was gathered (gather_copies) and launches a copy for each part
/// (launch_issue); 0: one for all.
Seconds parts_issue(const TrainingConfig& config, std::int64_t tensors);

/// Gathers the weights of the units of a pass (PyTorch FSDP's word: an end of the model or a layer)
/// beside the passes through the units before. At most one unit is gathered while another is used,
/// which is what PyTorch's prefetching and limit_all_gathers come to; the distributed optimizer of
/// Megatron-LM, whose weights have room, gathers as fast as it can.
class UnitGathers {
 public:
  /// @param units parameters in the order of the pass; none of a unit whose weights are there
  /// @param block, sync, config outlive it
  UnitGathers(BlockBuilder& block, const ReplicaSync& sync, const TrainingConfig& config,
              Pass::Kind pass, std::vector<RankParameters> units);

  /// To be called before the steps of each unit are appended.
  void next();

 private:
  void gather(std::size_t unit);

  BlockBuilder& block_;
  const ReplicaSync& sync_;
  const TrainingConfig& config_;
  std::vector<RankParameters> units_;
  std::size_t lead_ = 0;  ///< units that gathers run ahead
  std::size_t next_ = 0;
  std::vector<std::vector<OperatorId>> gathers_;  ///< gathers that were started, by unit
};

/// Copies the gradients of a unit into the buffer that is reduced, where the software has none in
/// place.
void copy_gradients(BlockBuilder& block, const RankParameters& parameters,
                    const TrainingConfig& config);

/// Memory of the units whose weights a rank holds whole, at their most; none without sharded
/// weights.
Bytes unit_weights(const LlmConfig& model, const TrainingConfig& config, int stage);

/// Whether gradients of weights come to be in the first backward pass of a step and are freed at
/// its end.
bool makes_gradients(const TrainingConfig& config);

/// Memory of the gradients of some parameters.
struct GradientMemory {
  Bytes whole;  ///< until they are reduced to shards, with what software copies of them
  Bytes kept;   ///< until the optimizer has read them
};
GradientMemory gradient_memory(const RankParameters& parameters, const TrainingConfig& config);

/// Bytes of all buffers of buckets (TrainingSoftware::bucket_buffers): during a backward pass, or
/// all the time under zero 3 (DeepSpeed f57fc4c runtime/zero/stage_1_and_2.py: backward, stage3.py:
/// initialize_optimizer_states).
Bytes bucket_buffers(const TrainingConfig& config);

/// Copies that an optimizer step makes of the gradients of `elements` parameters of a rank, in
/// bytes of the largest group; none where it reads them as they are (DeepSpeed f57fc4c
/// runtime/zero/stage3.py: _prepare_fp32_grad_for_sub_group).
struct StepCopies {
  Bytes flat;  ///< format of the gradients, until `wide` is there
  Bytes wide;  ///< fp32, until the group is updated
};
StepCopies step_copies(double elements, const TrainingConfig& config);

}  // namespace orrery
