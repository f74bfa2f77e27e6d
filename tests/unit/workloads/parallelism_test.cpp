// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <set>
#include <stdexcept>
#include <string>
#include <vector>

#include "tests/unit/workloads/example_models.h"
#include "workloads/layers/rank_parameters.h"
#include "workloads/plan/mesh.h"
#include "workloads/plan/program_builder.h"
#include "workloads/plan/stages.h"

namespace orrery::parallelism_test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(Mesh, NumbersTensorRanksFastestAndPipelineStagesSlowest) {
  const RankGrid grid({{"tp", 2}, {"dp", 3}, {"pp", 2}});
  EXPECT_EQ(grid.ranks(), 12);
  EXPECT_THAT(grid.ranks_at({{"tp", 1}, {"dp", 0}, {"pp", 0}}), ElementsAre(1));
  EXPECT_THAT(grid.ranks_at({{"tp", 0}, {"dp", 1}, {"pp", 0}}), ElementsAre(2));
  EXPECT_THAT(grid.ranks_at({{"tp", 0}, {"dp", 0}, {"pp", 1}}), ElementsAre(6));
  for (int rank = 0; rank < grid.ranks(); ++rank) {
    EXPECT_THAT(grid.ranks_at({{"tp", grid.coordinate(rank, "tp")},
                               {"dp", grid.coordinate(rank, "dp")},
                               {"pp", grid.coordinate(rank, "pp")}}),
                ElementsAre(rank));
  }
  const Mesh mesh({.tp = 2, .pp = 2, .dp = 3});
  EXPECT_EQ(mesh.ranks(), 12);
  EXPECT_THAT(mesh.stage(1), ElementsAre(6, 7, 8, 9, 10, 11));
}

TEST(Mesh, GroupsOfAStage) {
  const Mesh mesh({.tp = 2, .pp = 2, .dp = 4, .ep = 4});
  EXPECT_THAT(mesh.groups({"tp"}, 1), ElementsAre(ElementsAre(8, 9), ElementsAre(10, 11),
                                                  ElementsAre(12, 13), ElementsAre(14, 15)));
  EXPECT_THAT(mesh.groups({"dp"}, 0),
              ElementsAre(ElementsAre(0, 2, 4, 6), ElementsAre(1, 3, 5, 7)));
  EXPECT_THAT(mesh.groups({"ep"}, 0),
              ElementsAre(ElementsAre(0, 1, 2, 3), ElementsAre(4, 5, 6, 7)));
  EXPECT_THAT(mesh.groups({"edp"}, 0), ElementsAre(ElementsAre(0, 4), ElementsAre(1, 5),
                                                   ElementsAre(2, 6), ElementsAre(3, 7)));
  EXPECT_THAT(mesh.pairs(0, 1)[3], ElementsAre(3, 11));
}

TEST(Mesh, RanksThatShareAnExpertAreNeighbours) {
  const Mesh mesh({.tp = 2, .dp = 4, .ep = 2, .etp = 2});
  EXPECT_THAT(mesh.groups({"etp"}, 0), ElementsAre(ElementsAre(0, 1), ElementsAre(2, 3),
                                                   ElementsAre(4, 5), ElementsAre(6, 7)));
  EXPECT_THAT(mesh.groups({"ep"}, 0), ElementsAre(ElementsAre(0, 2), ElementsAre(1, 3),
                                                  ElementsAre(4, 6), ElementsAre(5, 7)));
  EXPECT_THAT(mesh.groups({"edp"}, 0), ElementsAre(ElementsAre(0, 4), ElementsAre(1, 5),
                                                   ElementsAre(2, 6), ElementsAre(3, 7)));
}

TEST(Mesh, EveryKindOfGroupHoldsEveryRankOnce) {
  const Mesh mesh({.tp = 4, .pp = 3, .dp = 6, .ep = 4, .etp = 2});
  const std::vector<std::vector<std::string>> kinds = {{"tp"}, {"dp"},  {"cp", "dp"},  {"tp", "dp"},
                                                       {"ep"}, {"etp"}, {"etp", "ep"}, {"edp"}};
  for (const std::vector<std::string>& along : kinds) {
    std::multiset<int> seen;
    for (int stage = 0; stage < 3; ++stage) {
      for (const auto& group : mesh.groups(along, stage)) seen.insert(group.begin(), group.end());
    }
    EXPECT_EQ(seen.size(), 72u);
    EXPECT_EQ(std::set<int>(seen.begin(), seen.end()).size(), 72u);
  }
}

// Context parallel ranks between tensor and data parallel ones, or data parallel ones outermost:
// only the list of axes differs.
TEST(Mesh, TakesFurtherAxesAndOtherOrders) {
  const RankGrid grid({{"tp", 2}, {"cp", 2}, {"dp", 2}, {"pp", 2}});
  EXPECT_THAT(grid.groups({"cp"}, {{"pp", 1}}),
              ElementsAre(ElementsAre(8, 10), ElementsAre(9, 11), ElementsAre(12, 14),
                          ElementsAre(13, 15)));
  EXPECT_THAT(grid.groups({"cp", "dp"}, {{"pp", 0}}),
              ElementsAre(ElementsAre(0, 2, 4, 6), ElementsAre(1, 3, 5, 7)));
  // tp, pp, dp: stages are neighbours, and their replicas far apart.
  const ParallelConfig parallel{.tp = 2, .pp = 2, .dp = 2};
  const Mesh mesh(parallel, RankGrid({{"tp", 2}, {"pp", 2}, {"dp", 2}}),
                  RankGrid({{"etp", 2}, {"pp", 2}, {"edp", 2}}));
  EXPECT_THAT(mesh.stage(1), ElementsAre(2, 3, 6, 7));
  EXPECT_THAT(mesh.groups({"dp"}, 1), ElementsAre(ElementsAre(2, 6), ElementsAre(3, 7)));
  EXPECT_THAT(mesh.pairs(0, 1), ElementsAre(ElementsAre(0, 2), ElementsAre(1, 3), ElementsAre(4, 6),
                                            ElementsAre(5, 7)));
}

TEST(Mesh, RefusesAxesThatItDoesNotHaveAndExpertsElsewhere) {
  EXPECT_THROW(RankGrid({{"tp", 2}, {"tp", 2}}), std::invalid_argument);
  EXPECT_THROW(RankGrid({{"tp", 0}}), std::invalid_argument);
  EXPECT_THROW(Mesh({.tp = 2}).groups({"sideways"}, 0), std::invalid_argument);
  EXPECT_THROW(Mesh({.tp = 2}).groups({"tp", "ep"}, 0), std::invalid_argument);
  EXPECT_THROW(
      Mesh({.tp = 2, .pp = 2}, RankGrid({{"tp", 2}, {"pp", 2}}), RankGrid({{"pp", 2}, {"etp", 2}})),
      std::invalid_argument);
}

TEST(ProgramBuilder, TransfersOfOneNameThatDifferAreTwo) {
  ProgramBuilder builder({.tp = 2});
  Transfer transfer;
  transfer.name = "gradients";
  transfer.bytes = Bytes(1000);
  transfer.groups = {{0, 1}};
  const TransferId first = builder.transfer(transfer);
  EXPECT_EQ(builder.transfer(transfer), first);
  std::set<TransferId> others;
  Transfer larger = transfer, reduced = transfer, elsewhere = transfer, routed = transfer;
  larger.bytes = Bytes(2000);
  reduced.kind = TransferKind::kReduceScatter;
  elsewhere.groups = {{1, 0}};
  routed.routing = ExpertRouting{};
  for (const Transfer& other : {larger, reduced, elsewhere, routed}) {
    others.insert(builder.transfer(other));
    EXPECT_EQ(builder.transfer(other), *others.rbegin());
  }
  EXPECT_EQ(others.size(), 4U);
  EXPECT_EQ(others.count(first), 0U);
}

// A layer calls its collectives again and again; only the first call lists the groups of all ranks.
TEST(ProgramBuilder, GroupsAreListedOncePerTransfer) {
  ProgramBuilder builder({.tp = 2, .pp = 2, .dp = 500});
  LayerCollective sum;
  sum.bytes = Bytes(1000);
  const TransferId first = builder.collective(sum, 0);
  const TransferId sent = builder.message("forward", 0, 1, Bytes(1000));
  EXPECT_EQ(builder.groups_listed(), 500U + 1000U);
  for (int call = 0; call < 100; ++call) {
    EXPECT_EQ(builder.collective(sum, 0), first);
    EXPECT_EQ(builder.message("forward", 0, 1, Bytes(1000)), sent);
  }
  EXPECT_EQ(builder.groups_listed(), 500U + 1000U);
}

TEST(ProgramBuilder, CollectivesOfOtherStagesScopesBytesOrRoutingsAreOthers) {
  ProgramBuilder builder({.tp = 2, .pp = 2, .dp = 2, .ep = 2});
  LayerCollective sum;
  sum.bytes = Bytes(1000);
  LayerCollective larger = sum, experts = sum, routed = sum;
  larger.bytes = Bytes(1000.5);
  experts.scope = Scope::kExpert;
  routed.routing = ExpertRouting{};
  const std::set<TransferId> ids = {builder.collective(sum, 0), builder.collective(sum, 1),
                                    builder.collective(larger, 0), builder.collective(experts, 0),
                                    builder.collective(routed, 0)};
  EXPECT_EQ(ids.size(), 5U);
  EXPECT_EQ(ids.count(builder.collective(routed, 0)), 1U);
}

TEST(ProgramBuilder, MessagesOfOneDirectionKeepTheirOwnBytes) {
  ProgramBuilder builder({.pp = 2});
  const TransferId a = builder.message("forward", 0, 1, Bytes(1000));
  const TransferId b = builder.message("forward", 0, 1, Bytes(3000));
  EXPECT_NE(a, b);
  const Program program = builder.finish({{}, {}});
  EXPECT_EQ(program.transfers[a].bytes, Bytes(1000));
  EXPECT_EQ(program.transfers[b].bytes, Bytes(3000));
}

TEST(ParallelConfig, SaysWhatIsNotSupported) {
  const auto message = [](const ParallelConfig& parallel) -> std::string {
    try {
      require_supported(parallel);
    } catch (const config::ConfigError& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_EQ(message({.tp = 8, .sp = true, .pp = 4, .vpp = 2, .dp = 2, .ep = 16}), "");
  EXPECT_EQ(message({.cp = 2}), "");
  EXPECT_THAT(message({.tp = 4, .dcp = 2}), HasSubstr("parallel.dcp: unsupported"));
  EXPECT_THAT(message({.tp = 4, .dcp = 3}), HasSubstr("parallel.dcp: dcp must divide tp"));
  EXPECT_NO_THROW(require_consistent({.tp = 4, .cp = 2, .dcp = 2}));
  EXPECT_EQ(message({.dp = 8, .ep = 4, .etp = 2}), "");
  EXPECT_THAT(message({.dp = 8, .ep = 4, .etp = 4}),
              HasSubstr("parallel.etp: ep * etp must divide"));
  EXPECT_THAT(message({.dp = 4, .zero = 3, .dp_shard = 3}),
              HasSubstr("parallel.dp_shard: dp_shard"));
  EXPECT_THAT(message({.zero = 4}), HasSubstr("parallel.zero: zero must be"));
  EXPECT_THAT(message({.vpp = 2}), HasSubstr("parallel.vpp"));
  EXPECT_THAT(message({.tp = 2, .dp = 2, .ep = 3}), HasSubstr("parallel.ep"));
  EXPECT_THAT(message({.sp = true}), HasSubstr("parallel.sp"));
  EXPECT_THAT(message({.pp = 0}), HasSubstr("at least 1"));
}

TEST(Mesh, ContextParallelRanksAreNextToTensorParallelOnes) {
  const Mesh mesh({.tp = 4, .pp = 2, .dp = 2, .cp = 2, .dcp = 2});
  EXPECT_EQ(mesh.ranks(), 32);
  EXPECT_THAT(mesh.groups({"cp"}, 1),
              ElementsAre(ElementsAre(16, 20), ElementsAre(17, 21), ElementsAre(18, 22),
                          ElementsAre(19, 23), ElementsAre(24, 28), ElementsAre(25, 29),
                          ElementsAre(26, 30), ElementsAre(27, 31)));
  // Parts of tensor parallel groups.
  EXPECT_THAT(mesh.groups({"dcp"}, 0),
              ElementsAre(ElementsAre(0, 1), ElementsAre(2, 3), ElementsAre(4, 5),
                          ElementsAre(6, 7), ElementsAre(8, 9), ElementsAre(10, 11),
                          ElementsAre(12, 13), ElementsAre(14, 15)));
}

TEST(StageLayers, GivesTheRestToLateStagesButNotToTheEnds) {
  EXPECT_THAT(stage_layers(8, 4), ElementsAre(2, 2, 2, 2));
  EXPECT_THAT(stage_layers(9, 4), ElementsAre(2, 2, 3, 2));
  EXPECT_THAT(stage_layers(10, 4), ElementsAre(2, 3, 3, 2));
  EXPECT_THAT(stage_layers(11, 4), ElementsAre(3, 3, 3, 2));  // the head stays alone
  EXPECT_THAT(stage_layers(5, 2), ElementsAre(3, 2));
  EXPECT_THAT(stage_layers(126, 12), ElementsAre(10, 10, 10, 10, 10, 11, 11, 11, 11, 11, 11, 10));
  EXPECT_THROW(stage_layers(3, 4), config::ConfigError);
}

TEST(StageLayers, AlwaysAddUp) {
  for (int stages = 1; stages < 20; ++stages) {
    for (int layers = stages; layers < 60; ++layers) {
      const auto counts = stage_layers(layers, stages);
      EXPECT_EQ(std::accumulate(counts.begin(), counts.end(), std::int64_t{0}), layers);
    }
  }
}

TEST(LayerRanges, ChunksGoRoundTheStages) {
  const auto ranges = layer_ranges(8, {.pp = 2, .vpp = 2});
  EXPECT_EQ(ranges[0][0].first, 0);
  EXPECT_EQ(ranges[1][0].first, 2);
  EXPECT_EQ(ranges[0][1].first, 4);
  EXPECT_EQ(ranges[1][1].first, 6);
  EXPECT_EQ(ranges[1][1].count, 2);
  EXPECT_THROW(layer_ranges(10, {.pp = 2, .vpp = 2}), config::ConfigError);
}

std::vector<std::int64_t> counts_of(std::int64_t layers, const ParallelConfig& parallel,
                                    int modules = 0) {
  std::vector<std::int64_t> counts;
  std::int64_t next = 0;
  const Placement placement = Placement::round_robin(parallel.pp, parallel.vpp);
  for (const LayerRange& range : slice_layers(layers, parallel, placement, modules)) {
    EXPECT_EQ(range.first, next);
    next += range.count;
    counts.push_back(range.count);
  }
  EXPECT_EQ(next, layers);
  return counts;
}

TEST(LayerLayout, CountsEndsAsLayers) {
  // Llama 3 405B: 126 layers, embedding and head in 128 slots (arXiv 2407.21783, section 3.3.2).
  std::vector<std::int64_t> counts =
      counts_of(126, {.pp = 16, .vpp = 8, .layout = {.embedding = true, .head = true}});
  ASSERT_EQ(counts.size(), 128U);
  EXPECT_EQ(counts.front(), 0);
  EXPECT_EQ(counts.back(), 0);
  EXPECT_EQ(std::count(counts.begin(), counts.end(), 1), 126);
  EXPECT_THAT(counts_of(7, {.pp = 2, .vpp = 2, .layout = {.head = true}}), ElementsAre(2, 2, 2, 1));
  EXPECT_THROW(counts_of(126, {.pp = 16, .vpp = 8, .layout = {.head = true}}), config::ConfigError);
}

TEST(LayerLayout, GivesStagesAtTheEndsTheirOwnNumberOfLayers) {
  // Qwen3-235B: 94 layers on 16 stages.
  const std::vector<std::int64_t> counts =
      counts_of(94, {.pp = 16, .layout = {.first = 5, .last = 5}});
  EXPECT_EQ(counts.front(), 5);
  EXPECT_EQ(std::count(counts.begin(), counts.end(), 6), 14);
  EXPECT_THAT(counts_of(10, {.pp = 3, .vpp = 2, .layout = {.first = 2}}),
              ElementsAre(1, 2, 2, 1, 2, 2));
  EXPECT_THROW(counts_of(94, {.pp = 16, .layout = {.first = 4, .last = 5}}), config::ConfigError);
  EXPECT_THROW(counts_of(10, {.pp = 3, .vpp = 2, .layout = {.first = 3}}), config::ConfigError);
}

TEST(LayerLayout, IsReadAsMegatronWritesIt) {
  const std::vector<SliceContents> slices = written_slices("Et*3|(tt|)*29,m|L");
  ASSERT_EQ(slices.size(), 32U);
  EXPECT_EQ(slices[0], (SliceContents{3, 0}));
  EXPECT_EQ(slices[29], (SliceContents{2, 0}));
  EXPECT_EQ(slices[30], (SliceContents{0, 1}));
  EXPECT_EQ(slices[31], (SliceContents{0, 0}));
  const ParallelConfig deepseek{.pp = 16, .vpp = 2, .layout = {.slices = "Et*3|(tt|)*29,m|L"}};
  EXPECT_EQ(counts_of(61, deepseek, 1)[0], 3);
  EXPECT_EQ(module_slice(deepseek, Placement::round_robin(16, 2)), 30);
  for (const char* wrong : {"", "tt|L", "Et|tE|L", "Et|t", "Et(t|L", "Et)|L", "Et*|L", "Ex|L",
                            "Em|t|L", "Em|m|L", "Et*999999999999999999999|L"})
    EXPECT_THROW(written_slices(wrong), std::invalid_argument) << wrong;
}

TEST(LayerLayout, SaysWhatDoesNotFit) {
  const auto message = [](std::int64_t layers, const ParallelConfig& parallel, int modules) {
    try {
      counts_of(layers, parallel, modules);
    } catch (const config::KeyError& error) {
      return error.paths().front() + ": " + error.message();
    }
    return std::string();
  };
  const ParallelConfig two{.pp = 2, .layout = {.slices = "Ett|ttL"}};
  EXPECT_EQ(message(4, two, 0), "");
  EXPECT_EQ(message(5, two, 0), "parallel.layout.slices: the layout has 4 layers (t), the model 5");
  EXPECT_EQ(message(4, two, 1),
            "parallel.layout.slices: the layout has 0 modules of multi-token "
            "prediction (m), the step 1");
  EXPECT_EQ(message(4, {.pp = 4, .layout = two.layout}, 0),
            "parallel.layout.slices: the layout has 2 slices, the pipeline 4 (pp = 4, vpp = 1)");
}

TEST(Mesh, TakesOtherOrders) {
  const Mesh mesh({.tp = 2, .pp = 2, .dp = 2, .order = "tp-cp-ep-pp-dp"});
  EXPECT_THAT(mesh.stage(0), ElementsAre(0, 1, 4, 5));
  EXPECT_THAT(mesh.groups({"dp"}, 1), ElementsAre(ElementsAre(2, 6), ElementsAre(3, 7)));
  EXPECT_THAT(mesh.pairs(0, 1), ElementsAre(ElementsAre(0, 2), ElementsAre(1, 3), ElementsAre(4, 6),
                                            ElementsAre(5, 7)));
  const Mesh last({.tp = 2, .pp = 2, .dp = 2, .order = "dp-pp-tp-cp-ep"});
  EXPECT_THAT(last.groups({"tp"}, 0), ElementsAre(ElementsAre(0, 4), ElementsAre(1, 5)));
  // Stages between the experts and their copies: as in Megatron-Core, ep * etp = tp * cp.
  EXPECT_NO_THROW(Mesh({.tp = 2, .pp = 2, .dp = 2, .ep = 2, .order = "tp-cp-ep-pp-dp"}));
  EXPECT_THROW(Mesh({.tp = 2, .pp = 2, .dp = 2, .ep = 4, .order = "tp-cp-ep-pp-dp"}),
               config::KeyError);
  EXPECT_THROW(Mesh({.order = "tp-dp-pp"}), config::KeyError);
}

/// What the ranks of a stage hold together, every copy counted once.
std::int64_t distinct(const RankParameters& p, const ParallelConfig& parallel) {
  return p.split * parallel.tp + p.whole + p.experts * parallel.ep * parallel.etp;
}

TEST(RankParameters, OfAllRanksAddUpToTheModel) {
  const ParallelConfig plans[] = {{},
                                  {.tp = 2},
                                  {.tp = 4, .sp = true, .pp = 3},
                                  {.pp = 2, .dp = 4, .ep = 4},
                                  {.dp = 8, .ep = 4, .etp = 2}};
  for (const char* name : {"llama_3_1_8b", "qwen3_30b_a3b", "deepseek_v3", "mixtral_8x7b",
                           "gemma_2_9b", "qwen3_8b", "gpt_oss_120b"}) {
    const LlmConfig model = library_model(name);
    for (ParallelConfig plan : plans) {
      if (!model.has_moe()) plan.ep = plan.etp = 1;
      if (model.moe.expert_bias) plan.etp = 1;  // the second biases would be on every sharer
      std::int64_t sum = 0;
      for (int stage = 0; stage < plan.pp; ++stage) {
        sum += distinct(stage_parameters(model, plan, stage), plan);
      }
      const ParameterCount count = count_parameters(model);
      // The last stage has its own copy of a tied table.
      const std::int64_t copy =
          model.tied_embeddings && plan.pp > 1 ? model.vocabulary * model.hidden : 0;
      EXPECT_EQ(sum, count.total + copy) << name << " pp " << plan.pp << " tp " << plan.tp;
    }
  }
}

TEST(RankParameters, PadTheVocabularyToTheTensorRanks) {
  LlmConfig model = small_llama(1);
  model.vocabulary = 97;
  EXPECT_EQ(embedding_parameters(model, 4).split, 25 * 64);
}

}  // namespace
}  // namespace orrery::parallelism_test
