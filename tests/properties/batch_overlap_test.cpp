// SPDX-License-Identifier: Apache-2.0
// Forward passes of a micro-batch beside backward passes of another
// (software.experts.batch_overlap): what hides exchanges of tokens hides no more than there is, and
// changes nothing else.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "sim/app/experiments/core/simulate.h"
#include "sim/graph/verify.h"
#include "sim/replay/replay.h"
#include "tests/properties/schema_facts.h"
#include "tests/unit/workloads/example_models.h"
#include "workloads/software/training_software.h"
#include "workloads/steps/figures/statistics.h"
#include "workloads/steps/training/training.h"

namespace orrery::batch_overlap_test {
namespace {

TrainingConfig plan(const ParallelConfig& parallel, std::int64_t micro_batches, bool overlaps) {
  TrainingConfig config;
  config.parallel = parallel;
  config.global_batch = micro_batches * parallel.dp;
  config.sequence = 16;
  TrainingSoftware software;
  software.experts.dispatcher.value = TokenDispatcher::kAllToAll;
  software.experts.batch_overlap.value = overlaps;
  config.software = std::make_shared<const TrainingSoftware>(software);
  return config;
}

const std::vector<ParallelConfig> kPlans = {
    {.dp = 2, .ep = 2},
    {.tp = 2, .sp = true, .dp = 2, .ep = 2},
    {.pp = 2, .vpp = 2, .dp = 2, .ep = 2},
    {.pp = 4, .vpp = 2, .dp = 2, .ep = 2},
};

/// Kernels take `kernel`, exchanges of tokens `exchange` and all else nothing.
ReplayResult step_of(const Program& program, Picoseconds kernel, Picoseconds exchange) {
  Costs costs;
  for (std::size_t i = 0; i < program.kernels.size(); ++i)
    costs.kernels.push_back({kernel, 0, Bound::kTensor});
  for (const Transfer& transfer : program.transfers)
    costs.transfers.push_back({transfer.purpose == "ep" ? exchange : 0, {}});
  return replay(program, costs);
}

Program program_of(const ParallelConfig& parallel, std::int64_t micro_batches, bool overlaps) {
  Program program = build_training(small_moe(8), plan(parallel, micro_batches, overlaps)).program;
  EXPECT_THAT(verify(program), testing::IsEmpty());
  return program;
}

/// How often a stage exchanges tokens in a step.
Picoseconds exchanges_of(const Program& program, const Role& role) {
  Picoseconds count = 0;
  for (const BlockId block : role.calls) {
    for (OperatorId id = 0; id < program.blocks[block].size(); ++id) {
      const Operator& op = program.blocks[block][id];
      if (op.kind == OperatorKind::kCollective && program.transfers[op.work].purpose == "ep")
        ++count;
    }
  }
  return count;
}

TEST(BatchOverlap, DoesTheSameWork) {
  for (const ParallelConfig& parallel : kPlans) {
    const ProgramStatistics off = program_statistics(program_of(parallel, 8, false));
    const ProgramStatistics on = program_statistics(program_of(parallel, 8, true));
    EXPECT_EQ(on.matrix_flops(), off.matrix_flops());
    ASSERT_EQ(on.kernels.size(), off.kernels.size());
    for (const auto& [name, kernels] : off.kernels)
      EXPECT_EQ(on.kernels.at(name).count, kernels.count) << name;
    for (const auto& [name, transfers] : off.transfers)
      EXPECT_EQ(on.transfers.at(name).count, transfers.count) << name;
  }
}

/// What must hold of a step with overlap beside the same without.
void expect_between(const ReplayResult& before, const ReplayResult& after, const Program& program,
                    Picoseconds exchange) {
  EXPECT_LE(after.end, before.end);
  for (std::size_t role = 0; role < after.roles.size(); ++role) {
    const TimeBreakdown& b = after.roles[role].breakdown;
    EXPECT_EQ(b.compute, before.roles[role].breakdown.compute);
    EXPECT_EQ(b.optimizer, before.roles[role].breakdown.optimizer);
    EXPECT_GE(after.end, b.compute + b.optimizer);
    EXPECT_GE(after.end, exchanges_of(program, program.roles[role]) * exchange);
  }
}

TEST(BatchOverlap, IsNeverSlowerThanWithoutNorFasterThanWhatItOverlaps) {
  constexpr Picoseconds kKernel = 1'000'000;
  for (const ParallelConfig& parallel : kPlans) {
    for (const std::int64_t micro_batches : {4, 8, 16}) {
      SCOPED_TRACE(std::to_string(parallel.pp) + " stages, " + std::to_string(micro_batches));
      const Program off = program_of(parallel, micro_batches, false);
      const Program on = program_of(parallel, micro_batches, true);
      for (const Picoseconds exchange :
           {Picoseconds{0}, kKernel / 2, 4 * kKernel, 10 * kKernel, 40 * kKernel})
        expect_between(step_of(off, kKernel, exchange), step_of(on, kKernel, exchange), on,
                       exchange);
    }
  }
}

// The first forward and the last backward pass of n are alone: 4 of 4 n exchanges of a layer. What
// is exchanged in the steady passes hides behind kernels of the other micro-batch, but for the
// first of a pair, where no kernel of the other has been issued, and its last.
TEST(BatchOverlap, HidesExchangesOfSteadyPassesThatAreShorterThanTheKernelsBeside) {
  constexpr Picoseconds kKernel = 1'000'000, kExchange = 2 * kKernel;
  constexpr Picoseconds kLayers = 8, kMicroBatches = 16;
  const Program off = program_of({.dp = 2, .ep = 2}, 16, false);
  const Program on = program_of({.dp = 2, .ep = 2}, 16, true);
  const auto waits = [](const Program& program) {
    return step_of(program, kKernel, kExchange).roles[0].breakdown.exposed_communication;
  };
  const Picoseconds alone = 4 * kLayers * kExchange;
  // Gradients of weights run beside one of four exchanges without overlap as well.
  EXPECT_GE(waits(off), 3 * kMicroBatches * kLayers * kExchange);
  EXPECT_GE(waits(on), 3 * kLayers * kExchange);
  EXPECT_LE(waits(on), alone + 4 * (kMicroBatches - 1) * kExchange);
}

TEST(BatchOverlap, IsTheOrderOfMegatronsCombinedPasses) {
  const Program program = program_of({.dp = 2, .ep = 2}, 4, true);
  const auto block = std::find_if(
      program.block_names.begin(), program.block_names.end(),
      [](const std::string& name) { return name.find(" beside ") != std::string::npos; });
  ASSERT_NE(block, program.block_names.end());
  const OperatorGraph& graph =
      program.blocks[static_cast<std::size_t>(block - program.block_names.begin())];
  // Forward in layer 1 beside backward in layer 6.
  std::vector<std::string> order;
  const std::set<std::string> told = {"layer 1 qkv",
                                      "layer 6 expert down dgrad",
                                      "layer 6 expert down wgrad",
                                      "layer 6 expert up wgrad",
                                      "layer 1 expert up",
                                      "layer 6 qkv dgrad"};
  for (OperatorId id = 0; id < graph.size(); ++id)
    if (told.contains(graph[id].name)) order.push_back(graph[id].name);
  EXPECT_THAT(order, testing::ElementsAre("layer 1 qkv", "layer 6 expert down dgrad",
                                          "layer 6 expert down wgrad", "layer 6 expert up wgrad",
                                          "layer 1 expert up", "layer 6 qkv dgrad"));
}

/// A step on two nodes.
RunRecord step(const std::string& plan, const std::vector<std::string>& changes) {
  return simulate(facts::load(
      "{experiment: training, system: dgx_h100, nodes: 2, " + plan +
          ", software: {experts: {dispatcher: alltoall, shared_experts: before_dispatch}}}",
      changes));
}

double of(const RunRecord& record, const std::string& name) { return record.find(name)->value; }

// Kernels beside transfers are slower, so that what is hidden is not all won. At clocks that no cap
// lowers: a shorter step of the same work draws more.
TEST(BatchOverlap, MovesItsOwnPartsOfAStepOnly) {
  for (const char* plan :
       {"model: deepseek_v2_lite, parallel: {dp: 16, ep: 16}, batch: {global: 128, sequence: 4096}",
        "model: qwen3_30b_a3b, parallel: {pp: 2, vpp: 4, dp: 8, ep: 8}, batch: {global: 128, "
        "sequence: 4096}"}) {
    const std::string burst = "system.accelerator.power.state=burst";
    const RunRecord off = step(plan, {burst});
    const RunRecord on = step(plan, {burst, "software.experts.batch_overlap=true"});
    EXPECT_LT(of(on, "step_time_s"), of(off, "step_time_s"));
    EXPECT_GE(of(on, "step_time_s"), of(on, "breakdown.compute_s"));
    EXPECT_LT(of(on, "breakdown.exposed_communication_s"),
              of(off, "breakdown.exposed_communication_s"));
    EXPECT_GT(of(on, "breakdown.contention_s"), of(off, "breakdown.contention_s"));
    for (const char* part : {"breakdown.compute_s", "breakdown.optimizer_s"})
      EXPECT_DOUBLE_EQ(of(on, part), of(off, part)) << part;
    // A layer frees as another makes: a chunk more at most, and no micro-batch.
    EXPECT_GE(of(on, "peak_memory_bytes"), of(off, "peak_memory_bytes"));
    EXPECT_LE(of(on, "peak_memory_bytes"), 1.15 * of(off, "peak_memory_bytes"));
  }
}

}  // namespace
}  // namespace orrery::batch_overlap_test
