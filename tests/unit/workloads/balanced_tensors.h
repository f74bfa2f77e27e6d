// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

#include "sim/graph/memory_profile.h"
#include "sim/graph/verify.h"
#include "workloads/steps/training/training.h"

namespace orrery::test {

/// Every tensor of a training step is made before it is used and freed in the end, whatever is
/// recomputed.
inline void expect_balanced_tensors(const LlmConfig& model, std::int64_t sequence,
                                    const std::vector<ParallelConfig>& plans) {
  for (const Recompute recompute : {Recompute::kNone, Recompute::kSelective, Recompute::kFull}) {
    for (const ParallelConfig& parallel : plans) {
      TrainingConfig config;
      config.parallel = parallel;
      config.global_batch = 8;
      config.sequence = sequence;
      config.recompute = recompute;
      if (recompute == Recompute::kSelective) {
        config.recompute.modules = {RecomputeModule::kLayernorm, RecomputeModule::kCoreAttn};
        if (model.has_moe()) config.recompute.modules.push_back(RecomputeModule::kMoe);
        if (model.attention.kind == AttentionKind::kLatent)
          config.recompute.modules.push_back(RecomputeModule::kMlaUpProj);
      }
      const Program program = build_training(model, config, true).program;
      EXPECT_THAT(verify_tensors(program), testing::IsEmpty());
      for (const auto& role : program.roles)
        EXPECT_EQ(memory_profile(program, role).left(), Bytes()) << to_string(recompute);
    }
  }
}

}  // namespace orrery::test
