// SPDX-License-Identifier: Apache-2.0
// Ranks that are folded against the same ranks replayed one by one.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "sim/app/experiments/core/experiment.h"
#include "sim/app/sweeps/workers/run_point.h"
#include "sim/graph/images.h"
#include "sim/replay/replay.h"
#include "tests/properties/random/draw.h"

namespace orrery::folding_test {
namespace {

const std::string kConfigs = ORRERY_SOURCE_DIR "/configs";

/// A plan of a few ranks on a few nodes, in which memory is no question.
std::vector<std::string> drawn_plan(Draw& draw) {
  const bool experts = draw.chance(0.3);
  const int tp = 1 << draw.below(experts ? 2 : 4), pp = 1 << draw.below(3), dp = 1 << draw.below(3);
  const int cp = experts ? 1 : 1 + static_cast<int>(draw.below(2));
  const int ep = experts && draw.chance(0.7) ? dp * (draw.chance(0.5) ? tp : 1) : 1;
  const int zero = pp == 1 && draw.chance(0.3) ? 3 : static_cast<int>(draw.below(2));
  const auto text = [](const char* key, int value) {
    return std::string(key) + ": " + std::to_string(value);
  };
  const std::string plan = text("tp", tp) + ", " + text("pp", pp) + ", " + text("dp", dp) + ", " +
                           text("cp", cp) + ", " + text("ep", ep) + ", " + text("zero", zero) +
                           (tp > 1 ? ", sp: true" : "");
  const int batches = pp * (1 + static_cast<int>(draw.below(2)));
  return {"system=" + draw.of({"dgx_h100", "dgx_a100", "gb200_nvl72", "cm384", "deepseek_h800",
                               "tpu_v5p_pod", "mi300x_platform"}),
          "nodes=32",
          std::string("model=") + (experts ? "mixtral_8x7b" : "llama_3_1_8b"),
          "parallel={" + plan + "}",
          "schedule=" + (pp > 1 ? draw.of({"1f1b", "gpipe", "zb_h1"}) : "auto"),
          "software=megatron_core",
          "precision=bf16",
          "flash_attention=true",
          "dropout=false",
          "batch={" + text("global", batches * dp) + ", micro: 1, sequence: 2048}",
          "recompute=" + std::string(draw.chance(0.5) ? "full" : "none"),
          "system.accelerator.memory.capacity=2 TB"};
}

RunRecord result_of(std::vector<std::string> changes) {
  return simulate_isolated(load_experiment(kConfigs + "/experiments/selene_22b.yaml", changes,
                                           config::Library(kConfigs)))
      .record;
}

// To the picosecond: times are printed from integers.
TEST(Folding, ChangesNoTimeOfDrawnPlans) {
  Draw draw(14);
  for (int i = 0; i < 24; ++i) {
    std::vector<std::string> changes = drawn_plan(draw);
    std::string told;
    for (const std::string& change : changes) told += change + "\n";
    const RunRecord folded = result_of(changes);
    changes.emplace_back("fold=off");
    const RunRecord unfolded = result_of(changes);
    ASSERT_GT(unfolded.find("replayed_operators")->value, 0) << told;
    for (const char* name :
         {"step_time_s", "forward_time_s", "backward_time_s", "breakdown.compute_s",
          "breakdown.contention_s", "breakdown.exposed_communication_s", "breakdown.bubble_s",
          "breakdown.optimizer_s", "breakdown.host_s", "breakdown.idle_s"})
      EXPECT_EQ(folded.find(name)->value, unfolded.find(name)->value) << name << "\n" << told;
  }
}

/// Two roles of two ranks each. Ranks 0 and 1 send over one link, as images of one transfer, beside
/// ranks 2 and 3, which are one group and one flow.
struct SharedLink {
  Program program;
  Costs folded, unfolded;

  SharedLink() {
    program.streams = {"compute"};
    program.ranks = 4;
    for (const bool alone : {true, false}) {
      Transfer transfer;
      transfer.name = alone ? "images" : "group";
      transfer.groups =
          alone ? std::vector<std::vector<int>>{{0}, {1}} : std::vector<std::vector<int>>{{2, 3}};
      program.transfers.push_back(transfer);
      OperatorGraph block;
      block.add({"send", OperatorKind::kCollective, Category::kCommunication, 0,
                 static_cast<std::uint32_t>(program.blocks.size())});
      program.blocks.push_back(block);
      program.block_names.push_back(transfer.name);
    }
    program.roles = {{"images", {0}, {0, 1}}, {"group", {1}, {2, 3}}};
    folded.links = unfolded.links = {BytesPerSecond(3e9)};
    folded.transfers = {{0, {{0, 6e6, 6e6}}, {}, {}, 3e6}, {0, {{0, 6e6, 6e6}}, {}, {}}};
    unfolded.transfers = {{0, {{0, 3e6, 3e6}}}, {0, {{0, 3e6, 3e6}}}, {0, {{0, 6e6, 6e6}}}};
  }
};

// Three flows have 1 GB/s each, so that the images of 3 MB end at 3 ms; the last 3 MB of the group
// then have the link alone. As one flow the images would have had 1.5 GB/s, and all ended at 4 ms.
TEST(Folding, ImagesOnOneLinkAreAFlowEach) {
  const SharedLink link;
  const Images images(link.program);
  ASSERT_EQ(images.size(), 3U);
  ReplayOptions by_rank;
  by_rank.images = &images;
  const ReplayResult folded = replay(link.program, link.folded);
  const ReplayResult unfolded = replay(link.program, link.unfolded, by_rank);
  for (const ReplayResult* result : {&folded, &unfolded}) {
    EXPECT_EQ(result->roles[0].end, 3'000'000'000U);
    EXPECT_EQ(result->roles[1].end, 4'000'000'000U);
  }
}

TEST(Images, OfARingAreOne) {
  Program program;
  program.transfers.resize(2);
  program.transfers[0].groups = {{0, 2}, {2, 0}, {1, 3}, {3, 1}};
  program.transfers[1].groups = {{0, 1}, {2, 3}, {4}};
  const Images images(program);
  EXPECT_EQ(images.size(), 5U);
  EXPECT_EQ(images.of(0, 0), images.of(0, 2));
  EXPECT_NE(images.of(0, 0), images.of(0, 1));
  EXPECT_EQ(images.participants(images.of(0, 3)), 2U);
  EXPECT_EQ(images.participants(images.of(1, 4)), 1U);
  EXPECT_EQ(images.transfer(images.of(1, 4)), 1U);
}

}  // namespace
}  // namespace orrery::folding_test
