// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "sim/config/declared.h"
#include "sim/config/type.h"
#include "workloads/layers/parts/rank_work.h"
#include "workloads/plan/stages.h"

namespace orrery {

/// Which layers full recomputation is about.
enum class RecomputeMethod : std::uint8_t {
  kUniform,  ///< all, in units of num_layers, of which the input of the first is kept
  kBlock,    ///< the first num_layers of each chunk of layers, one by one
};

/// What backward passes compute again: keys and values of Megatron-LM
/// (megatron/training/arguments.py).
struct RecomputeConfig {
  Recompute granularity = Recompute::kNone;
  RecomputeMethod method = RecomputeMethod::kUniform;
  int num_layers = 1;  ///< layers of a unit, or of each chunk
  std::vector<RecomputeModule> modules = {RecomputeModule::kCoreAttn};

  RecomputeConfig() = default;
  /// NOLINTNEXTLINE(google-explicit-constructor): `recompute = Recompute::kFull`
  RecomputeConfig(Recompute value) : granularity(value) {}
  bool operator==(const RecomputeConfig&) const = default;
  static const config::Schema<RecomputeConfig>& schema();
};

/// Sets what all layers have in common.
void set_recompute(const RecomputeConfig& recompute, RankWork& work);

/// Layers of a chunk that are computed again together, one after the other before the gradients of
/// the last.
struct RecomputeUnit {
  LayerRange layers;
  Recompute recompute = Recompute::kNone;

  /// What a rank does in a layer of it.
  RankWork work(RankWork of_chunk, std::int64_t layer) const;
};
std::vector<RecomputeUnit> recompute_units(const RecomputeConfig& recompute, LayerRange chunk);
const RecomputeUnit& unit_of(const std::vector<RecomputeUnit>& units, std::int64_t layer);

/// @throws config::KeyError for parts that the model does not have
void require_recompute(const LlmConfig& model, const RecomputeConfig& recompute);

template <>
struct config::EnumNames<RecomputeMethod> {
  static constexpr std::pair<RecomputeMethod, const char*> values[] = {
      {RecomputeMethod::kUniform, "uniform"}, {RecomputeMethod::kBlock, "block"}};
};

}  // namespace orrery
