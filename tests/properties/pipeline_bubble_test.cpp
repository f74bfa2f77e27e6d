// SPDX-License-Identifier: Apache-2.0
// What a pipeline waits for, against the closed forms of its schedules (Narayanan et al.,
// "Efficient large-scale language model training on GPU clusters using Megatron-LM", SC 2021, 2.2).
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <string>

#include "sim/graph/verify.h"
#include "sim/replay/replay.h"
#include "tests/unit/workloads/example_models.h"
#include "workloads/training/training.h"

namespace orrery {
namespace {

constexpr int kLayersAStage = 8;

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
  config.global_batch = p.micro_batches;
  config.sequence = 16;
  config.recompute = p.recompute;
  return config;
}

/// The kernels that a layer has; those of embedding, head and optimizer are not among them.
std::set<std::string> layer_kernels(const Pipeline& p) {
  TrainingConfig config = training_of(p);
  config.parallel.pp = config.parallel.vpp = config.layers_only = 1;
  std::set<std::string> names;
  for (const Kernel& kernel : build_training(small_llama(1), config).program.kernels)
    names.insert(kernel.name);
  return names;
}

/// A step whose kernels take a microsecond each in a layer and nothing elsewhere, collectives 0.3
/// us and messages nothing: stages are equal but for two collectives of embedding and head.
ReplayResult step_of(const Pipeline& p) {
  const Program program =
      build_training(small_llama(kLayersAStage * p.stages), training_of(p)).program;
  EXPECT_THAT(verify(program), testing::IsEmpty());
  const std::set<std::string> layer = layer_kernels(p);
  Costs costs;
  for (const Kernel& kernel : program.kernels)
    costs.kernels.push_back({layer.count(kernel.name) > 0 ? 1'000'000U : 0U, 0, Bound::kTensor});
  for (const Transfer& transfer : program.transfers) {
    costs.transfers.push_back({transfer.kind == TransferKind::kSendReceive ? 0U : 300'000U, {}});
  }
  return replay(program, costs);
}

/// A stage works m (F + B), and the pipeline fills and drains for (pp - 1) (F + B) / vpp: of the
/// step, (pp - 1) / (m vpp + pp - 1), which is what the schedule says of itself.
void expect_closed_form(const Pipeline& p) {
  SCOPED_TRACE(text_of(p));
  const ReplayResult step = step_of(p);
  const double share = (p.stages - 1.0) / (p.micro_batches * p.chunks + p.stages - 1.0);
  const TrainingConfig config = training_of(p);
  EXPECT_DOUBLE_EQ(schedule_of(config).bubble(pipeline_shape(config)).value(), share);
  for (const RoleResult& role : step.roles) {
    const TimeBreakdown& b = role.breakdown;
    EXPECT_EQ(b.compute + b.contention + b.exposed_communication + b.bubble + b.optimizer + b.host +
                  b.idle,
              step.end);
    EXPECT_NEAR(static_cast<double>(b.bubble + b.idle) / static_cast<double>(step.end), share,
                0.01);
  }
}

TEST(PipelineBubble, IsThatOfTheClosedFormWithAndWithoutSequenceParallelismAndRecomputation) {
  for (const bool sequence_parallel : {false, true}) {
    for (const Recompute recompute : {Recompute::kNone, Recompute::kSelective, Recompute::kFull}) {
      for (const int stages : {2, 4}) {
        for (const int micro_batches : {4, 8})
          expect_closed_form({stages, 1, micro_batches, sequence_parallel, recompute});
      }
      for (const int chunks : {2, 4})
        expect_closed_form({4, chunks, 8, sequence_parallel, recompute});
    }
  }
}

}  // namespace
}  // namespace orrery
