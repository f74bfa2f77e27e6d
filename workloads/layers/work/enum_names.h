// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <utility>

#include "sim/config/declared.h"
#include "workloads/layers/work/token_batch.h"
#include "workloads/layers/work/training_passes.h"

namespace orrery::config {

template <>
struct EnumNames<Recompute> {
  static constexpr std::pair<Recompute, const char*> values[] = {
      {Recompute::kNone, "none"},
      {Recompute::kSelective, "selective"},
      {Recompute::kFull, "full"},
  };
};

template <>
struct EnumNames<RecomputeModule> {
  static constexpr std::pair<RecomputeModule, const char*> values[] = {
      {RecomputeModule::kCoreAttn, "core_attn"},
      {RecomputeModule::kMlp, "mlp"},
      {RecomputeModule::kMoe, "moe"},
      {RecomputeModule::kMoeAct, "moe_act"},
      {RecomputeModule::kLayernorm, "layernorm"},
      {RecomputeModule::kMlaUpProj, "mla_up_proj"},
      {RecomputeModule::kSharedExperts, "shared_experts"},
  };
};

/// The phases of inference; training is an experiment of its own.
template <>
struct EnumNames<Phase> {
  static constexpr std::pair<Phase, const char*> values[] = {
      {Phase::kPrefill, "prefill"},
      {Phase::kDecode, "decode"},
      {Phase::kMixed, "mixed"},
  };
};

}  // namespace orrery::config
