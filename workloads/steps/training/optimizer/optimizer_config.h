// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <utility>

#include "sim/config/declared.h"
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

/// Number format of gradients that are added up.
enum class GradientStates : std::uint8_t { kBySoftware, kFp32, kBf16 };

/// Number format of a moment. Eight bits have a scale for each block of 256 values (bitsandbytes
/// functional.py, optimizer_update_8bit_blockwise), fp8 one for each tensor (Megatron-Core
/// optimizer_config.py, exp_avg_dtype).
enum class MomentFormat : std::uint8_t { kFp32, kBf16, kFp8, kInt8 };

/// Whether the optimizer keeps weights of 32 bits beside those of products. Without them it rounds
/// new weights to the format of products, and reads gradients as they are.
enum class MasterWeights : std::uint8_t { kFp32, kNone };

/// Where moments lie: in device memory, or in memory that the driver moves to the host, page by
/// page, where the device has no room (bitsandbytes optim/optimizer.py, is_paged:
/// cudaMallocManaged).
enum class MomentPlacement : std::uint8_t { kDevice, kPaged };

/// What the optimizer keeps of each parameter.
struct OptimizerStates {
  GradientStates gradients = GradientStates::kBySoftware;
  MomentFormat momentum = MomentFormat::kFp32;
  MomentFormat variance = MomentFormat::kFp32;
  MasterWeights master = MasterWeights::kFp32;
  MomentPlacement placement = MomentPlacement::kDevice;
  static const config::Schema<OptimizerStates>& schema();

  /// Whether the states are those of Megatron-Core's default optimizer.
  bool are_usual() const {
    return momentum == MomentFormat::kFp32 && variance == MomentFormat::kFp32 &&
           master == MasterWeights::kFp32;
  }
};

/// Bytes of a value of a moment, with its share of scales.
double moment_bytes(MomentFormat format);

/// States of Adam in the memory of the host, which updates what it has (Megatron-Core
/// optimizer/cpu_offloading/hybrid_optimizer.py).
struct OptimizerOffload {
  double fraction = 0;   ///< share of a rank's parameters; 0: none
  bool overlap = false;  ///< copies run beside the host's updates, tensor by tensor
  static const config::Schema<OptimizerOffload>& schema();
};

template <>
struct config::EnumNames<OptimizerKind> {
  static constexpr std::pair<OptimizerKind, const char*> values[] = {
      {OptimizerKind::kAdam, "adam"}, {OptimizerKind::kMuon, "muon"}, {OptimizerKind::kSgd, "sgd"}};
};

template <>
struct config::EnumNames<GradientStates> {
  static constexpr std::pair<GradientStates, const char*> values[] = {
      {GradientStates::kBySoftware, "auto"},
      {GradientStates::kFp32, "fp32"},
      {GradientStates::kBf16, "bf16"}};
};

template <>
struct config::EnumNames<MomentFormat> {
  static constexpr std::pair<MomentFormat, const char*> values[] = {{MomentFormat::kFp32, "fp32"},
                                                                    {MomentFormat::kBf16, "bf16"},
                                                                    {MomentFormat::kFp8, "fp8"},
                                                                    {MomentFormat::kInt8, "int8"}};
};

template <>
struct config::EnumNames<MasterWeights> {
  static constexpr std::pair<MasterWeights, const char*> values[] = {
      {MasterWeights::kFp32, "fp32"}, {MasterWeights::kNone, "none"}};
};

template <>
struct config::EnumNames<MomentPlacement> {
  static constexpr std::pair<MomentPlacement, const char*> values[] = {
      {MomentPlacement::kDevice, "device"}, {MomentPlacement::kPaged, "paged"}};
};

template <>
struct config::EnumNames<MuonTensorMode> {
  static constexpr std::pair<MuonTensorMode, const char*> values[] = {
      {MuonTensorMode::kDuplicated, "duplicated"},
      {MuonTensorMode::kDistributed, "distributed"},
      {MuonTensorMode::kBlockwise, "blockwise"}};
};

}  // namespace orrery
