// SPDX-License-Identifier: Apache-2.0
// What a pipeline waits for, against the closed forms of its schedules (Narayanan et al., "Efficient
// large-scale language model training on GPU clusters using Megatron-LM", SC 2021, 2.2).
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "sim/graph/verify.h"
#include "sim/replay/replay.h"
#include "tests/unit/workloads/example_models.h"
#include "workloads/training/training.h"

namespace orrery {
namespace {

constexpr int kLayersAStage = 4;

struct Pipeline {
  int stages;
  int chunks;
  int micro_batches;
  bool sequence_parallel;
  Recompute recompute;
};

std::string text_of(const Pipeline& p) {
  return std::to_string(p.stages) + " stages of " + std::to_string(p.chunks) + " chunks, " +
         std::to_string(p.micro_batches) + " micro-batches, sp " +
         std::to_string(p.sequence_parallel) + ", recompute " +
         std::to_string(static_cast<int>(p.recompute));
}

TrainingConfig training_of(const Pipeline& p) {
  TrainingConfig config;
  config.parallel.tp = 2;
  config.parallel.sp = p.sequence_parallel;
  config.parallel.pp = p.stages;
  config.parallel.vpp = p.chunks;
  config.schedule = p.chunks > 1 ? "interleaved" : "1f1b";
  config.global_batch = p.micro_batches;
  config.sequence = 16;
  config.recompute = p.recompute;
  config.layers_only = kLayersAStage * p.stages;
  return config;
}

/// A step of equal stages whose kernels take a microsecond each, collectives 0.3 us and messages
/// nothing.
ReplayResult step_of(const Pipeline& p) {
  const TrainingProgram built =
      build_training(small_llama(kLayersAStage * p.stages), training_of(p));
  EXPECT_THAT(verify(built.program), testing::IsEmpty());
  Costs costs;
  costs.kernels.assign(built.program.kernels.size(), {1'000'000, 0, Bound::kTensor});
  for (const Transfer& transfer : built.program.transfers) {
    costs.transfers.push_back({transfer.kind == TransferKind::kSendReceive ? 0U : 300'000U, {}});
  }
  return replay(built.program, costs);
}

Picoseconds sum(const TimeBreakdown& b) {
  return b.compute + b.contention + b.exposed_communication + b.bubble + b.optimizer + b.host +
         b.idle;
}

/// pp - 1 of vpp (m + pp) - ... slots: a stage alone works m (F + B), and the pipeline fills and
/// drains for (pp - 1) (F + B) / vpp.
void expect_closed_form(const Pipeline& p) {
  SCOPED_TRACE(text_of(p));
  Pipeline alone = p;
  alone.stages = alone.chunks = 1;
  const Picoseconds work = step_of(alone).end;
  const ReplayResult step = step_of(p);
  const auto slots = static_cast<Picoseconds>(p.micro_batches * p.chunks);
  const Picoseconds bubble = work / slots * static_cast<Picoseconds>(p.stages - 1);
  EXPECT_EQ(step.end, work + bubble);
  for (const RoleResult& role : step.roles) {
    EXPECT_EQ(sum(role.breakdown), step.end);
    EXPECT_EQ(role.breakdown.bubble + role.breakdown.idle, bubble);
  }
}

TEST(PipelineBubble, IsThatOfTheClosedFormWithAndWithoutSequenceParallelismAndRecomputation) {
  for (const bool sequence_parallel : {false, true}) {
    for (const Recompute recompute : {Recompute::kNone, Recompute::kSelective, Recompute::kFull}) {
      for (const int stages : {2, 4}) {
        for (const int micro_batches : {4, 8})
          expect_closed_form({stages, 1, micro_batches, sequence_parallel, recompute});
      }
      expect_closed_form({4, 2, 8, sequence_parallel, recompute});
    }
  }
}

}  // namespace
}  // namespace orrery
