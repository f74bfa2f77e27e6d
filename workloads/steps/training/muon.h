// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "workloads/layers/parts/mixer.h"
#include "workloads/plan/parallel_config.h"
#include "workloads/plan/program_builder.h"
#include "workloads/steps/training/optimizer/optimizer_config.h"

namespace orrery {

struct TrainingConfig;

/// A matrix that Muon updates: a rank's part of a weight of [outputs, inputs].
struct MuonMatrix {
  std::int64_t outputs = 0, inputs = 0;  ///< those of the rank
  MatrixSplit split = MatrixSplit::kNone;
  bool expert = false;  ///< ranks of etp share it, not those of tp

  double elements() const { return static_cast<double>(outputs) * static_cast<double>(inputs); }
  auto operator<=>(const MuonMatrix&) const = default;
};

/// Matrices of a layer on one rank: those of its mixer, queries, keys and values apart
/// (Megatron-Core arguments.py: muon_split_qkv), gate and up as one (linear_fc1), and one of each
/// expert. Weights of hyper-connections stay with the rest.
std::vector<MuonMatrix> layer_matrices(const LlmConfig& model, const LayerConfig& layer,
                                       const ParallelConfig& parallel);

/// Matrices that the rank of a stage updates which has most of them. Under zero 1 replicas share
/// them out whole, the largest first, each to who has least (Megatron-Core
/// optimizer/layer_wise_optimizer.py; here over all of a stage, there bucket by bucket).
std::vector<MuonMatrix> updated_matrices(const LlmConfig& model, const TrainingConfig& config,
                                         int stage);
/// Elements of all matrices of a rank of a stage, those of experts apart.
struct MatrixElements {
  double dense = 0, experts = 0;
};
MatrixElements matrix_elements(const LlmConfig& model, const TrainingConfig& config, int stage);

/// What ranks that share a matrix do in the Newton-Schulz iterations of one matrix, with m the side
/// of its Gram matrix and n the other: 4 m^2 n + 2 m^3 FLOPs an iteration.
struct NewtonSchulz {
  std::int64_t m = 0, n = 0;
  double gathered = 0;  ///< bytes of the matrix in fp32, gathered before; 0: nothing is
  double summed = 0;    ///< bytes of the Gram matrix in bf16, added up in each; 0: nothing is
};
NewtonSchulz newton_schulz(const MuonMatrix& matrix, MuonTensorMode mode, int ranks);

/// Updates matrices: momentum, normalisation to bf16, iterations in bf16 (muon_utils.py:
/// fp32_matmul_prec medium), weights.
void append_muon(BlockBuilder& block, const Mesh& mesh, const MuonConfig& muon,
                 std::vector<MuonMatrix> matrices, int stage);

}  // namespace orrery
