// SPDX-License-Identifier: Apache-2.0
#include "workloads/schedules/schedule.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <map>
#include <set>
#include <stdexcept>
#include <tuple>
#include <utility>

#include "sim/config/diagnostics.h"
#include "sim/graph/verify.h"
#include "tests/unit/workloads/example_models.h"
#include "workloads/statistics.h"
#include "workloads/training/training.h"

namespace orrery {
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

/// Two passes at once, which is what cannot be built.
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

/// The most passes whose backward is still to come.
std::int64_t peak_in_flight(const std::vector<Pass>& passes) {
  std::int64_t now = 0, peak = 0;
  for (const Pass& pass : passes) {
    now += pass.kind == Kind::kForward ? 1 : -1;
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
}

/// Runs the passes of all ranks as their inputs come; messages of one direction between two ranks
/// arrive in the order in which they were sent, as the k-th receive meets the k-th send.
class Wires {
 public:
  Wires(const PipelineSchedule& schedule, const PipelineShape& shape)
      : placement_(schedule.place(shape)) {
    for (int rank = 0; rank < shape.ranks; ++rank) {
      const std::vector<Pass> passes = schedule.passes(shape, rank);
      queues_.emplace_back(passes.begin(), passes.end());
    }
  }

  void expect_all_run() {
    bool moved = true;
    while (std::exchange(moved, false)) {
      for (int rank = 0; rank < static_cast<int>(queues_.size()); ++rank) moved |= run_next(rank);
    }
    for (const auto& queue : queues_) EXPECT_TRUE(queue.empty()) << "stuck";
  }

 private:
  using Message = std::pair<int, std::int64_t>;  ///< slice that sends, micro-batch

  std::optional<int> neighbour(int slice, int rank, int distance) const {
    const int other = slice + distance;
    if (other < 0 || other >= placement_.slices()) return std::nullopt;
    return placement_.place(other).rank == rank ? std::nullopt : std::optional(other);
  }

  bool run_next(int rank) {
    auto& queue = queues_[static_cast<std::size_t>(rank)];
    if (queue.empty()) return false;
    const Pass pass = queue.front();
    const int slice = placement_.slice({rank, pass.chunk});
    const int way = pass.kind == Kind::kForward ? 1 : -1;
    const bool sends = pass.kind != Kind::kWeightGradient;
    if (const auto from = neighbour(slice, rank, -way); from && sends) {
      auto& wire = wires_[{placement_.place(*from).rank, rank, way}];
      if (wire.empty()) return false;
      EXPECT_EQ(wire.front(), Message(*from, pass.micro_batch)) << "rank " << rank;
      wire.pop_front();
    }
    if (const auto to = neighbour(slice, rank, way); to && sends)
      wires_[{rank, placement_.place(*to).rank, way}].push_back({slice, pass.micro_batch});
    queue.pop_front();
    return true;
  }

  Placement placement_;
  std::vector<std::deque<Pass>> queues_;
  std::map<std::tuple<int, int, int>, std::deque<Message>> wires_;
};

/// Every registered schedule in shapes that it takes.
template <class Visit>
void each_shape(Visit visit) {
  for (const auto& [name, item] : ScheduleRegistry::items()) {
    SCOPED_TRACE(name);
    for (const int ranks : {2, 3, 4, 8}) {
      for (const int chunks : {1, 2, 3}) {
        for (const int groups : {1, 2, 5}) {
          if (item.entry->chunks().holds(chunks))
            visit(*item.entry, PipelineShape{ranks, chunks, groups * ranks});
        }
      }
    }
  }
}

TEST(Schedules, CompleteWithMessagesInOrder) {
  each_shape([](const PipelineSchedule& schedule, const PipelineShape& shape) {
    Wires(schedule, shape).expect_all_run();
  });
  Wires(*ScheduleRegistry::at("schedule", "1f1b"), {4, 1, 3}).expect_all_run();
}

/// Counted with kWeightGradient for the gradients of weights, whole backward passes as both halves.
TEST(Schedules, RunEveryPassOnce) {
  each_shape([](const PipelineSchedule& schedule, const PipelineShape& shape) {
    for (int rank = 0; rank < shape.ranks; ++rank) {
      std::set<std::tuple<Kind, int, std::int64_t>> seen;
      std::size_t runs = 0;
      const auto add = [&](Kind kind, const Pass& pass) {
        seen.insert({kind, pass.chunk, pass.micro_batch});
        ++runs;
      };
      for (const Pass& pass : schedule.passes(shape, rank)) {
        if (pass.kind != Kind::kBackward) add(pass.kind, pass);
        if (pass.kind == Kind::kBackward) add(Kind::kInputGradient, pass);
        if (pass.kind == Kind::kBackward) add(Kind::kWeightGradient, pass);
      }
      EXPECT_EQ(runs, static_cast<std::size_t>(3 * shape.chunks * shape.micro_batches));
      EXPECT_EQ(seen.size(), runs);
    }
  });
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
  EXPECT_THROW(Placement({{0, 1}, {1, 2}}), std::invalid_argument);
  EXPECT_THROW(Placement({{0}, {2}}), std::invalid_argument);
  const Placement folded_two({{0, 3}, {1, 2}});
  EXPECT_EQ(folded_two.place(3), (ChunkPlace{0, 1}));
  EXPECT_EQ(folded_two.slice({1, 1}), 2);
  EXPECT_EQ(Placement::round_robin(2, 2).slice({1, 1}), 3);
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

TEST(Schedules, ThatRunPassesSideBySideAreRefusedByName) {
  EXPECT_THAT(refusal(plan("side by side", {.pp = 2})),
              HasSubstr("schedule 'side by side' runs passes side by side"));
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

}  // namespace
}  // namespace orrery
