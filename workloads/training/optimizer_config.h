// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <utility>

#include "sim/config/schema.h"
#include "sim/config/type.h"

namespace orrery {

/// What updates the weights of matrices; embedding, head, norms and biases have Adam under Muon.
enum class OptimizerKind : std::uint8_t {
  kAdam,
  kMuon,  ///< momentum that Newton-Schulz iterations make orthogonal (arXiv 2502.16982)
  kSgd,   ///< stochastic gradient descent with momentum
};

/// How ranks that share a matrix orthogonalise it (Emerging-Optimizers
/// orthogonalized_optimizers/muon_utils.py, newton_schulz_tp; Megatron-Core optimizer/muon.py).
enum class MuonTensorMode : std::uint8_t {
  kDuplicated,   ///< each gathers all of it and does all of the work
  kDistributed,  ///< each has its part, and Gram matrices are added up in every iteration
  kBlockwise,    ///< each makes its own part orthogonal
};

struct MuonConfig {
  int num_ns_steps = 5;  ///< Newton-Schulz iterations
  MuonTensorMode tp_mode = MuonTensorMode::kBlockwise;
  static const config::Schema<MuonConfig>& schema();
};

/// States of Adam in the memory of the host, which updates what it has (Megatron-Core
/// optimizer/cpu_offloading/hybrid_optimizer.py).
struct OptimizerOffload {
  double fraction = 0;   ///< share of a rank's parameters; 0: none
  bool overlap = false;  ///< copies run beside the host's updates, tensor by tensor
  static const config::Schema<OptimizerOffload>& schema();
};

}  // namespace orrery

namespace orrery::config {

template <>
struct EnumNames<OptimizerKind> {
  static constexpr std::pair<OptimizerKind, const char*> values[] = {
      {OptimizerKind::kAdam, "adam"}, {OptimizerKind::kMuon, "muon"}, {OptimizerKind::kSgd, "sgd"}};
};

template <>
struct EnumNames<MuonTensorMode> {
  static constexpr std::pair<MuonTensorMode, const char*> values[] = {
      {MuonTensorMode::kDuplicated, "duplicated"},
      {MuonTensorMode::kDistributed, "distributed"},
      {MuonTensorMode::kBlockwise, "blockwise"}};
};

}  // namespace orrery::config
