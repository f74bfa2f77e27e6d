// SPDX-License-Identifier: Apache-2.0
// What a pipeline waits for, against the closed forms of its schedules (Narayanan et al.,
// "Efficient large-scale language model training on GPU clusters using Megatron-LM", SC 2021, 2.2).
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <string>

#include "sim/graph/verify.h"
#include "sim/replay/replay.h"
#include "tests/properties/schema_facts.h"
#include "tests/unit/workloads/example_models.h"
#include "workloads/steps/training/training.h"

namespace orrery::pipeline_bubble_test {
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

/// How long a layer takes in a forward pass, for gradients of activations, and of weights.
struct PassTimes {
  Picoseconds forward, inputs, weights;
};

TrainingConfig scheduled(const std::string& schedule, int stages, int micro_batches) {
  TrainingConfig config;
  config.schedule = schedule;
  config.parallel.pp = stages;
  config.parallel.vpp = ScheduleRegistry::at("schedule", schedule)->chunks().holds(1) ? 1 : 2;
  config.global_batch = micro_batches;
  config.sequence = 16;
  return config;
}

/// A step in which one kernel of each layer takes all of the time of its pass.
ReplayResult step_of(const TrainingConfig& config, const PassTimes& times) {
  const Program program =
      build_training(small_llama(kLayersAStage * config.parallel.pp), config).program;
  EXPECT_THAT(verify(program), testing::IsEmpty());
  Costs costs;
  for (const Kernel& kernel : program.kernels) {
    const Picoseconds time = kernel.name == "qkv"         ? times.forward
                             : kernel.name == "qkv dgrad" ? times.inputs
                             : kernel.name == "qkv wgrad" ? times.weights
                                                          : 0;
    costs.kernels.push_back({time, 0, Bound::kTensor});
  }
  costs.transfers.resize(program.transfers.size());
  return replay(program, costs);
}

TEST(PipelineBubble, OfSplitAndSidewaysPassesIsThatOfTheClosedFormWherePassesTakeEquallyLong) {
  constexpr Picoseconds kPass = 1'000'000;
  for (const char* name :
       {"gpipe", "1f1b", "interleaved", "zb_h1", "zb_h2", "zb_v", "dualpipe", "dualpipev"}) {
    for (const int stages : {2, 4, 8}) {
      for (const int micro_batches : {2 * stages, 4 * stages}) {
        SCOPED_TRACE(name + std::string(", stages ") + std::to_string(stages));
        const TrainingConfig config = scheduled(name, stages, micro_batches);
        const ReplayResult step = step_of(config, {kPass, kPass, kPass});
        const double share = schedule_of(config).bubble(pipeline_shape(config)).value();
        for (const RoleResult& role : step.roles) {
          const auto waits = static_cast<double>(role.breakdown.bubble + role.breakdown.idle);
          EXPECT_NEAR(waits / static_cast<double>(step.end), share, 1e-9);
        }
      }
    }
  }
}

/// (pp - 1) (T_F + T_B - T_W) and (pp / 2 - 1) (F&B + B - 3 W), whatever passes take: Qi et al.
/// 2023, table 2; DeepSeek-V3, table 2, where nothing overlaps.
TEST(PipelineBubble, OfZeroBubbleAndDualPipeFollowsTheTimesOfPasses) {
  constexpr Picoseconds kForward = 1'000'000, kInputs = 1'000'000, kWeights = 700'000;
  constexpr Picoseconds kBackward = kInputs + kWeights;
  for (const int stages : {2, 4, 8}) {
    const auto waits = [&](const char* name) {
      const ReplayResult step =
          step_of(scheduled(name, stages, 4 * stages), {kForward, kInputs, kWeights});
      const TimeBreakdown& b = step.roles[0].breakdown;
      return b.bubble + b.idle;
    };
    EXPECT_EQ(waits("zb_h1"), kLayersAStage * (stages - 1) * (kForward + kInputs - kWeights));
    EXPECT_EQ(waits("dualpipe"),
              kLayersAStage * (stages / 2 - 1) * (kForward + 2 * kBackward - 3 * kWeights));
  }
}

/// Waits for a stage that has not started to send are bubbles, not communication: 12 equal stages
/// wait 11 of 48 + 11 passes, and a little more where ends are larger than other stages.
TEST(PipelineBubble, OfTwelveStagesIsBookedAsBubble) {
  const LoadedExperiment loaded = facts::load(
      "{experiment: training, system: dgx_h100, nodes: 12, model: gpt_175b, parallel: {tp: 8, sp: "
      "true, pp: 12}, batch: {global: 48, micro: 1, sequence: 2048}, recompute: full}",
      {});
  const RunRecord record = simulate(loaded);
  const auto of = [&](const char* name) { return record.find(name)->value; };
  const double waits = of("breakdown.bubble_s") + of("breakdown.idle_s");
  EXPECT_GT(waits / of("step_time_s"), 11.0 / 59 - 0.03);
  EXPECT_LT(waits / of("step_time_s"), 11.0 / 59 + 0.06);
  EXPECT_LT(of("breakdown.exposed_communication_s"), waits);
}

}  // namespace
}  // namespace orrery::pipeline_bubble_test
