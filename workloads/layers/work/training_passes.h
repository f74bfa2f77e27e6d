// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace orrery {

/// Activations that the backward pass computes again instead of keeping them (Korthikanti et al.
/// 2022, section 5).
enum class Recompute : std::uint8_t {
  kNone,
  kSelective,  ///< parts of a layer (RecomputeModule)
  kFull,       ///< every layer, from its input
};
const char* to_string(Recompute recompute);

/// Parts of a layer that selective recomputation may compute again: Megatron-Core's
/// recompute_modules (transformer_config.py).
enum class RecomputeModule : std::uint8_t {
  kCoreAttn,       ///< scores, softmax, dropout and values of attention
  kMlp,            ///< MLP without experts, from its input
  kMoe,            ///< router, experts, shared experts and exchanges, from their input
  kMoeAct,         ///< function between the matrices of experts
  kLayernorm,      ///< norms before attention and MLP, or experts
  kMlaUpProj,      ///< up-projections of latents, and rotary positions
  kSharedExperts,  ///< shared experts, from their input
};
inline constexpr std::size_t kRecomputeModules = 7;

/// Training: what the passes through a layer keep, drop and compute again.
struct TrainingPasses {
  Recompute recompute = Recompute::kNone;
  /// Whether each RecomputeModule is computed again, under kSelective.
  std::array<bool, kRecomputeModules> modules = {true};
  /// Under kFull: the layer's input is computed again, with the layers before it.
  bool input_again = false;
  bool dropout = false;
  /// Rows of each expert over the mean. What is more is dropped, what is fewer filled up; 0: every
  /// token goes to its experts.
  double expert_capacity = 0;
  /// The gradients of every micro-batch leave the rank; products have nothing to add to.
  bool fresh_gradients = false;
  /// The first layer of a chunk that sees the encoder's output, which keeps it for all.
  bool keeps_encoder_output = false;
  /// The first layer of a chunk, which keeps what blocks of layers before it gave (attention
  /// residuals), as it came with its input.
  bool keeps_sources = false;
  bool tensors = false;  ///< steps say which tensors they make, use and free

  bool operator==(const TrainingPasses&) const = default;
};

}  // namespace orrery
