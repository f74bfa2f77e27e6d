// SPDX-License-Identifier: Apache-2.0
#include "workloads/schedules/schedule.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <stdexcept>
#include <tuple>
#include <utility>

#include "sim/config/diagnostics.h"
#include "sim/graph/verify.h"
#include "tests/unit/workloads/example_models.h"
#include "workloads/schedules/order_check.h"
#include "workloads/schedules/written.h"
#include "workloads/steps/figures/statistics.h"
#include "workloads/steps/training/training.h"

namespace orrery::schedules_test {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using Kind = Pass::Kind;

/// All of this a user would write in one file: input and weight gradients apart, and two chunks per
/// rank of which the second goes the way back, so that the last rank sends itself nothing.
class FoldedAndSplit final : public PipelineSchedule {
 public:
  ChunkLimits chunks() const override { return {2, 2}; }
  Placement place(const PipelineShape& shape) const override {
    std::vector<std::vector<int>> slices;
    for (int rank = 0; rank < shape.ranks; ++rank)
      slices.push_back({rank, 2 * shape.ranks - 1 - rank});
    return Placement(slices);
  }
  std::vector<Pass> passes(const PipelineShape& shape, int) const override {
    std::vector<Pass> all;
    for (const auto& [kind, chunk] :
         {std::pair(Kind::kForward, 0), std::pair(Kind::kForward, 1),
          std::pair(Kind::kInputGradient, 1), std::pair(Kind::kInputGradient, 0),
          std::pair(Kind::kWeightGradient, 1), std::pair(Kind::kWeightGradient, 0)}) {
      for (std::int64_t i = 0; i < shape.micro_batches; ++i) all.push_back({kind, chunk, i});
    }
    return all;
  }
};
const ScheduleRegistry::Register folded("folded and split", "of a test",
                                        std::make_shared<FoldedAndSplit>());

/// The first two passes at once.
class SideBySide final : public PipelineSchedule {
 public:
  ChunkLimits chunks() const override { return {1, 1}; }
  std::vector<Pass> passes(const PipelineShape& shape, int rank) const override {
    std::vector<Pass> all = alternating_passes(shape, 1, shape.ranks - 1 - rank);
    all.front().with_next = true;
    return all;
  }
};
const ScheduleRegistry::Register side_by_side("side by side", "of a test",
                                              std::make_shared<SideBySide>());

std::vector<Pass> passes_of(const char* name, const PipelineShape& shape, int rank) {
  return ScheduleRegistry::at("schedule", name)->passes(shape, rank);
}

/// "F0 B0 ..." with micro-batch numbers, chunks as letters behind them.
std::string text(const std::vector<Pass>& passes, bool with_chunks) {
  std::string line;
  for (const Pass& pass : passes) {
    line += (line.empty() ? "" : " ") + std::string(pass.kind == Kind::kForward ? "F" : "B") +
            std::to_string(pass.micro_batch);
    if (with_chunks) line += static_cast<char>('a' + pass.chunk);
  }
  return line;
}

TEST(OneForwardOneBackward, IsTheOrderOfThePaper) {
  const auto order = [](int ranks, int rank, std::int64_t micro_batches) {
    return text(passes_of("1f1b", {ranks, 1, micro_batches}, rank), false);
  };
  EXPECT_EQ(order(3, 0, 4), "F0 F1 F2 B0 F3 B1 B2 B3");
  EXPECT_EQ(order(3, 1, 4), "F0 F1 B0 F2 B1 F3 B2 B3");
  EXPECT_EQ(order(3, 2, 4), "F0 B0 F1 B1 F2 B2 F3 B3");
  EXPECT_EQ(order(4, 0, 2), "F0 F1 B0 B1");
}

TEST(Interleaved, IsTheOrderOfMegatron) {
  // Two ranks, chunks a and b, four micro-batches; warm-up 2 (2 - 1 - rank) + 2.
  EXPECT_EQ(text(passes_of("interleaved", {2, 2, 4}, 0), true),
            "F0a F1a F0b F1b F2a B0b F3a B1b F2b B0a F3b B1a B2b B3b B2a B3a");
  EXPECT_EQ(text(passes_of("interleaved", {2, 2, 4}, 1), true),
            "F0a F1a F0b B0b F1b B1b F2a B0a F3a B1a F2b B2b F3b B3b B2a B3a");
}

// One forward more warms up; then each forward runs beside the backward behind it, neither of which
// needs the other.
TEST(Pairs, AreForwardsBesideBackwardsOfOtherMicroBatches) {
  const auto order = [](const char* name, const PipelineShape& shape, int rank) {
    std::string line;
    const std::vector<Pass> passes = passes_of(name, shape, rank);
    for (std::size_t i = 0; i < passes.size(); ++i) {
      if (i > 0) line += passes[i - 1].with_next ? "+" : " ";
      line += to_string(passes[i]);
    }
    return line;
  };
  const auto paired = [](int ranks, int chunks, std::int64_t micro_batches) {
    return PipelineShape{ranks, chunks, micro_batches, true};
  };
  EXPECT_EQ(order("1f1b", paired(1, 1, 3), 0), "F0.0 F1.0+B0.0 F2.0+B1.0 B2.0");
  EXPECT_EQ(order("interleaved", paired(2, 2, 4), 1),
            "F0.0 F1.0 F0.1 F1.1+B0.1 F2.0+B1.1 F3.0+B0.0 F2.1+B1.0 F3.1+B2.1 B3.1 B2.0 B3.0");
}

/// The most passes whose gradients of weights are still to come.
std::int64_t peak_in_flight(const std::vector<Pass>& passes) {
  std::int64_t now = 0, peak = 0;
  for (const Pass& pass : passes) {
    if (pass.kind == Kind::kForward) ++now;
    if (pass.kind == Kind::kBackward || pass.kind == Kind::kWeightGradient) --now;
    peak = std::max(peak, now);
  }
  return peak;
}

TEST(Schedules, HoldAsManyPassesInFlightAsThePapersSay) {
  for (int rank = 0; rank < 8; ++rank) {
    EXPECT_EQ(peak_in_flight(passes_of("1f1b", {8, 1, 32}, rank)), 8 - rank);
  }
  // (v p + p - 1) chunks of L / (v p) layers: L (1 + (p - 1) / (p v)), Korthikanti et al. 2022,
  // section 4.2.3.
  EXPECT_EQ(peak_in_flight(passes_of("interleaved", {8, 3, 64}, 0)), 3 * 8 + 8 - 1);
  EXPECT_EQ(peak_in_flight(passes_of("1f1b", {8, 1, 4}, 0)), 4);
  // Qi et al. 2023, table 2 and section 6: p, 2 p - 1, and 2 p halves of a stage; DeepSeek-V3,
  // table 2: pp + 1; DualPipeV: 2 pp + 1 halves.
  for (int rank = 0; rank < 8; ++rank) {
    EXPECT_EQ(peak_in_flight(passes_of("gpipe", {8, 1, 32}, rank)), 32);
    EXPECT_EQ(peak_in_flight(passes_of("zb_h1", {8, 1, 32}, rank)), 8);
    EXPECT_EQ(peak_in_flight(passes_of("zb_h2", {8, 1, 32}, rank)), 15);
    EXPECT_EQ(peak_in_flight(passes_of("zb_v", {8, 2, 32}, rank)), 16);
    EXPECT_EQ(peak_in_flight(passes_of("dualpipe", {8, 2, 32}, rank)), 9);
    EXPECT_EQ(peak_in_flight(passes_of("dualpipev", {8, 2, 32}, rank)), 17);
  }
}

/// Every registered schedule in shapes that it takes.
template <class Visit>
void each_shape(Visit visit) {
  for (const auto& [name, item] : ScheduleRegistry::items()) {
    SCOPED_TRACE(name);
    for (const int ranks : {2, 3, 4, 8}) {
      for (const int chunks : {1, 2, 3}) {
        for (const int groups : {1, 2, 5}) {
          const PipelineShape shape{ranks, chunks, groups * ranks};
          if (item.entry->chunks().holds(chunks) && item.entry->fault(shape).empty())
            visit(*item.entry, shape);
        }
      }
    }
  }
}

TrainingConfig plan(const std::string& schedule, ParallelConfig parallel) {
  TrainingConfig config;
  config.parallel = parallel;
  config.schedule = schedule;
  config.global_batch = std::int64_t{8} * parallel.dp;
  config.sequence = 16;
  return config;
}

std::string refusal(const TrainingConfig& config) {
  try {
    build_training(small_llama(4), config);
  } catch (const config::ConfigError& error) {
    return error.what();
  }
  return "";
}

/// What is wrong with the passes of a schedule; "" for nothing.
std::string fault_of(const PipelineSchedule& schedule, const PipelineShape& shape) {
  std::vector<std::vector<Pass>> passes;
  for (int rank = 0; rank < shape.ranks; ++rank) passes.push_back(schedule.passes(shape, rank));
  const auto fault = first_fault(schedule.place(shape), shape, passes);
  return fault ? "rank " + std::to_string(fault->rank) + ": " + fault->message : "";
}

TEST(Schedules, CompleteWithMessagesInOrder) {
  int shapes = 0;
  each_shape([&](const PipelineSchedule& schedule, const PipelineShape& shape) {
    EXPECT_EQ(fault_of(schedule, shape), "") << shape.ranks << " ranks, " << shape.micro_batches;
    ++shapes;
  });
  EXPECT_GT(shapes, 80);
  int paired = 0;
  each_shape([&](const PipelineSchedule& schedule, PipelineShape shape) {
    if (!schedule.can_pair(shape)) return;
    shape.pairs = true;
    EXPECT_EQ(fault_of(schedule, shape), "") << shape.ranks << " ranks, " << shape.micro_batches;
    ++paired;
  });
  EXPECT_GT(paired, 30);
  for (const char* name : {"1f1b", "gpipe", "zb_h1", "zb_h2"})
    EXPECT_EQ(fault_of(*ScheduleRegistry::at("schedule", name), {4, 1, 3}), "") << name;
  EXPECT_EQ(fault_of(*ScheduleRegistry::at("schedule", "zb_v"), {4, 2, 3}), "");
}

/// Counted with kWeightGradient for the gradients of weights, whole backward passes as both halves.
/// Copies of a slice share its micro-batches.
TEST(Schedules, RunEveryPassOnce) {
  each_shape([](const PipelineSchedule& schedule, const PipelineShape& shape) {
    const Placement placement = schedule.place(shape);
    std::set<std::tuple<Kind, int, std::int64_t>> seen;  // slices
    std::size_t runs = 0;
    for (int rank = 0; rank < shape.ranks; ++rank) {
      for (const Pass& pass : schedule.passes(shape, rank)) {
        const auto add = [&](Kind kind) {
          seen.insert({kind, placement.slice({rank, pass.chunk}), pass.micro_batch});
          ++runs;
        };
        if (pass.kind != Kind::kBackward) add(pass.kind);
        if (pass.kind == Kind::kBackward) add(Kind::kInputGradient);
        if (pass.kind == Kind::kBackward) add(Kind::kWeightGradient);
      }
    }
    EXPECT_EQ(runs, static_cast<std::size_t>(3 * placement.slices() * shape.micro_batches));
    EXPECT_EQ(seen.size(), runs);
  });
}

TEST(ZeroBubble, IsTheOrderOfThePaper) {
  const auto order = [](const char* name, int rank) {
    std::string line;
    for (const Pass& pass : passes_of(name, {3, 1, 5}, rank))
      line += (line.empty() ? "" : " ") + to_string(pass).substr(0, 2);
    return line;
  };
  EXPECT_EQ(order("zb_h1", 0), "F0 F1 F2 B0 W0 F3 B1 W1 F4 B2 W2 B3 W3 B4 W4");
  EXPECT_EQ(order("zb_h1", 2), "F0 B0 F1 B1 F2 B2 W0 F3 B3 W1 F4 B4 W2 W3 W4");
  EXPECT_EQ(order("zb_h2", 0), "F0 F1 F2 F3 F4 B0 W0 B1 W1 B2 W2 B3 W3 B4 W4");
}

TEST(Schedules, RefuseShapesThatTheyCannotRun) {
  EXPECT_THAT(refusal(plan("dualpipe", {.pp = 3, .vpp = 2})),
              HasSubstr("dualpipe needs an even number of pipeline stages, got pp = 3"));
  EXPECT_THAT(refusal(plan("dualpipev", {.pp = 8, .vpp = 2})),
              HasSubstr("dualpipev needs at least 2 * pp micro-batches, got pp = 8 and 8"));
}

TEST(Schedules, AreInterleavedWithSeveralChunksWhereNobodyChooses) {
  TrainingConfig config;
  EXPECT_EQ(config.schedule, "auto");
  EXPECT_EQ(&schedule_of(config), ScheduleRegistry::at("schedule", "1f1b").get());
  config.parallel.vpp = 2;
  EXPECT_EQ(&schedule_of(config), ScheduleRegistry::at("schedule", "interleaved").get());
  config.schedule = "1f1b";  // what is written decides, and is refused with two chunks
  EXPECT_EQ(&schedule_of(config), ScheduleRegistry::at("schedule", "1f1b").get());
}

TEST(Placement, RefusesSlicesThatAreMissingOrThereTwice) {
  using Slices = std::vector<std::vector<int>>;
  EXPECT_THROW(Placement(Slices{{0, 1}, {1, 2}}), std::invalid_argument);
  EXPECT_THROW(Placement(Slices{{0}, {2}}), std::invalid_argument);
  const Placement folded_two(Slices{{0, 3}, {1, 2}});
  EXPECT_EQ(folded_two.place(3), (ChunkPlace{0, 1}));
  EXPECT_EQ(folded_two.slice({1, 1}), 2);
  EXPECT_EQ(Placement::round_robin(2, 2).slice({1, 1}), 3);
  // Two copies: chunks of one number are one of them.
  const Placement mirrored = Placement::mirrored(4);
  EXPECT_EQ(mirrored.slices(), 4);
  EXPECT_EQ(mirrored.place(3, 1), (ChunkPlace{0, 1}));
  EXPECT_EQ(mirrored.neighbour({1, 1}, 1), (ChunkPlace{0, 1}));
  EXPECT_EQ(mirrored.neighbour({0, 1}, 1), std::nullopt);
  EXPECT_EQ(mirrored.twins(1), (std::vector<int>{1, 2}));
  EXPECT_TRUE(mirrored.holds(0, 3));
  EXPECT_EQ(Placement::folded(2).neighbour({1, 0}, 1), (ChunkPlace{1, 1}));
}

TEST(Schedules, ThatRunPassesSideBySideDoTheSameWorkInOneBlock) {
  const TrainingProgram training = build_training(small_llama(4), plan("side by side", {.pp = 2}));
  const TrainingProgram apart = build_training(small_llama(4), plan("1f1b", {.pp = 2}));
  EXPECT_THAT(verify(training.program), IsEmpty());
  EXPECT_EQ(training.program.roles[0].calls.size() + 1, apart.program.roles[0].calls.size());
  EXPECT_EQ(program_statistics(training.program).matrix_flops(),
            program_statistics(apart.program).matrix_flops());
}

TEST(Schedules, SayHowManyChunksTheyTake) {
  EXPECT_THAT(refusal(plan("1f1b", {.pp = 2, .vpp = 2})),
              HasSubstr("1f1b has 1 chunk of layers per stage, got parallel.vpp = 2"));
  EXPECT_THAT(refusal(plan("folded and split", {.pp = 2})),
              HasSubstr("has 2 chunks of layers per stage, got parallel.vpp = 1"));
  EXPECT_EQ((ChunkLimits{2, 4}).text(), "2 to 4 chunks");
}

/// A step under the split and folded schedule beside the interleaved one: the same work, one
/// message fewer each way, for the last rank holds two slices that follow each other.
TEST(Schedules, ThatSplitBackwardPassesDoTheSameWork) {
  for (LlmConfig model : {small_llama(8), small_moe(8)}) {
    for (const bool tied : {false, true}) {
      model.tied_embeddings = tied;
      const ParallelConfig parallel{.tp = 2, .sp = true, .pp = 4, .vpp = 2, .dp = 2};
      const TrainingConfig split = plan("folded and split", parallel);
      const Program whole = build_training(model, plan("interleaved", parallel)).program;
      const TrainingProgram training = build_training(model, split);
      EXPECT_THAT(verify(training.program), IsEmpty());
      EXPECT_EQ(training.forward[0].size(), 2U);
      EXPECT_EQ(training.backward[0].size(), 4U);
      ProgramStatistics a = program_statistics(whole), b = program_statistics(training.program);
      EXPECT_EQ(a.matrix_flops(), b.matrix_flops());
      for (const auto& [name, kernels] : a.kernels) {
        EXPECT_EQ(b.kernels[name].count, kernels.count) << name;
        if (name != "optimizer") {
          EXPECT_EQ(b.kernels[name].bytes, kernels.bytes) << name;
        }
      }
      for (const auto& [name, transfers] : a.transfers) {
        if (name == "send_receive pp") {
          EXPECT_EQ(transfers.count * 6, b.transfers[name].count * 7);
        } else if (name != "all_reduce embedding") {
          EXPECT_EQ(b.transfers[name].count, transfers.count) << name;
        }
      }
      // Rank 0 has the embedding and the head, so that their tables are one.
      EXPECT_EQ(b.transfers.contains("all_reduce embedding"), false);
    }
  }
}

/// The gradient of a product's input is waited for, that of its weight is not.
TEST(Schedules, LeaveToWeightGradientsWhatOnlyWeightsNeed) {
  const TrainingProgram training = build_training(
      small_llama(8), plan("folded and split", {.tp = 2, .sp = true, .pp = 4, .vpp = 2}));
  const Program& program = training.program;
  const auto names = [&](const std::string& block) {
    std::set<std::string> found;
    for (std::size_t i = 0; i < program.blocks.size(); ++i) {
      if (program.block_names[i] != block) continue;
      for (OperatorId id = 0; id < program.blocks[i].size(); ++id)
        found.insert(program.blocks[i][id].name);
    }
    return found;
  };
  EXPECT_THAT(names("weight gradient 1.0"),
              ::testing::UnorderedElementsAre("layer 1 down wgrad", "layer 1 gate-up wgrad",
                                              "layer 1 gate-up input all-gather again",
                                              "layer 1 attention output wgrad", "layer 1 qkv wgrad",
                                              "layer 1 qkv input all-gather again"));
  for (const std::string& name : names("input gradient 1.0"))
    EXPECT_THAT(name, ::testing::Not(HasSubstr("wgrad")));
  EXPECT_TRUE(names("weight gradient 0.0").contains("embedding backward"));
}

/// A plan of two stages whose passes are written.
TrainingConfig written(std::vector<std::string> passes) {
  ScheduleConfig schedule;
  schedule.passes = std::move(passes);
  TrainingConfig config = plan("auto", {.pp = 2});
  config.global_batch = 2;
  config.written = schedule.written();
  return config;
}

std::string refusal_of_passes(const std::vector<std::string>& passes) {
  try {
    build_training(small_llama(4), written(passes));
  } catch (const config::KeyError& error) {
    return error.paths().front() + ": " + error.message();
  }
  return "";
}

TEST(WrittenSchedule, IsRunAsItStands) {
  const TrainingConfig config = written({"F0 F1 B0 B1", "F0 B0 F1 B1"});
  EXPECT_EQ(schedule_of(config).passes(pipeline_shape(config), 1), passes_of("1f1b", {2, 1, 2}, 1));
  const Program program = build_training(small_llama(4), config).program;
  EXPECT_THAT(verify(program), IsEmpty());
  const TrainingConfig split = written({"F0 F1 B0 W0 B1 W1", "F0+B0 F1 B1 W1"});
  EXPECT_EQ(schedule_of(split).passes(pipeline_shape(split), 0)[2].kind, Kind::kInputGradient);
}

TEST(WrittenSchedule, IsRefusedWhereItCannotComeToItsEnd) {
  EXPECT_EQ(refusal_of_passes({"F0 F1 B0 B1", "F0 B0 F1 B1", "F0 F1 B0 B1"}),
            "schedule.passes: the schedule has passes of 3 stages, the pipeline has pp = 2");
  EXPECT_EQ(refusal_of_passes({"F0 F1 B0", "F0 B0 F1 B1"}),
            "schedule.passes.0: stage 0: B1.0 is missing");
  EXPECT_EQ(refusal_of_passes({"F0 F1 B0 B1", "F0 B0 F1 B1 B1"}),
            "schedule.passes.1: stage 1: B1.0 is there twice");
  EXPECT_EQ(refusal_of_passes({"F0 F1 B0 B1", "B0 F0 F1 B1"}),
            "schedule.passes.1: stage 1: B0.0 stands before its forward pass");
  EXPECT_EQ(refusal_of_passes({"F0 B0 F1 B1", "F0 F1 B0 B1"}),
            "schedule.passes.0: stage 0: B0.0 never starts: what it needs comes from a rank that "
            "waits itself");
  EXPECT_EQ(refusal_of_passes({"F0 F1 B0 B1", "F1 B1 F0 B0"}),
            "schedule.passes.1: stage 1: F1.0 gets the input of micro-batch 0, which rank 0 sends "
            "first");
  EXPECT_EQ(refusal_of_passes({"F0 F2 B0 B2", "F0 B0 F1 B1"}),
            "schedule.passes.0: stage 0: F2.0: there are 2 micro-batches, counted from 0");
  EXPECT_THROW(written({"F0 X1", ""}), config::KeyError);
}

}  // namespace
}  // namespace orrery::schedules_test
