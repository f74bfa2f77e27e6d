// SPDX-License-Identifier: Apache-2.0
// Node-limited routing, and experts and tensors in groups of their own (parallel folding), through
// whole steps of training: no token is lost, and what crosses nodes keeps the router's limit.
#include <gtest/gtest.h>

#include <fstream>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "sim/app/experiments/core/simulate.h"
#include "tests/properties/schema_facts.h"

namespace orrery::expert_plans_test {
namespace {

constexpr int kLayers = 2, kTokens = 1024, kCopies = 8;
constexpr double kHidden = 1024, kWidth = 512;

/// Two layers as DeepSeek-V3's, of 64 experts in 8 groups, of which a token takes `groups`.
facts::TextFile model_of(int groups) {
  std::ifstream file(ORRERY_SOURCE_DIR "/configs/models/hf/deepseek_v3.json");
  std::stringstream text;
  text << file.rdbuf();
  std::string model = text.str();
  for (const auto& [key, value] : std::vector<std::pair<std::string, std::string>>{
           {"\"hidden_size\": 7168", "\"hidden_size\": 1024"},
           {"\"num_hidden_layers\": 61", "\"num_hidden_layers\": 2"},
           {"\"first_k_dense_replace\": 3", "\"first_k_dense_replace\": 0"},
           {"\"n_routed_experts\": 256", "\"n_routed_experts\": 64"},
           {"\"moe_intermediate_size\": 2048", "\"moe_intermediate_size\": 512"},
           {"\"num_attention_heads\": 128", "\"num_attention_heads\": 8"},
           {"\"topk_group\": 4", "\"topk_group\": " + std::to_string(groups)}}) {
    const std::size_t at = model.find(key);
    EXPECT_NE(at, std::string::npos) << key;
    model.replace(at, key.size(), value);
  }
  return {"orrery_expert_plans_" + std::to_string(groups) + ".json", model};
}

/// A step on 8 nodes of 8, a group of experts on each node where ep is 64.
RunRecord step(int groups, const std::string& parallel, int micro_batches, int dp,
               const std::string& dispatcher = "exchange") {
  const facts::TextFile model = model_of(groups);
  return simulate(facts::load(
      "{experiment: training, system: dgx_h100, nodes: 8, model: {hf: " + model.path() +
          "}, parallel: " + parallel + ", batch: {global: " + std::to_string(micro_batches * dp) +
          ", micro: 1, sequence: " + std::to_string(kTokens) +
          "}, software: {experts: {dispatch_format: sixteen_bit, dispatcher: " + dispatcher + "}}}",
      {}));
}

double leaving(const RunRecord& record) {
  double bytes = 0;
  for (const LinkUse& use : record.link_classes)
    if (use.name == "accelerator->leaf") bytes += use.bytes;
  EXPECT_GT(bytes, 0);
  return bytes;
}

const ClassBreakdown& class_of(const RunRecord& record, const std::string& name) {
  static const ClassBreakdown none;
  for (const ClassBreakdown& c : record.classes)
    if (c.name == name) return c;
  return none;
}

/// Bytes that leave nodes for a micro-batch of all ranks: a step of three less one of one, so that
/// gradients and weights, which go once a step, are left out.
double exchanged_by_a_micro_batch(int groups, const std::string& dispatcher = "exchange") {
  const std::string plan = "{dp: 64, ep: 64}";
  return (leaving(step(groups, plan, 3, 64, dispatcher)) -
          leaving(step(groups, plan, 1, 64, dispatcher))) /
         2;
}

// Each of the 64 x 1,024 tokens goes out and comes back in either pass, in 16 bits, to the nodes of
// the groups that it takes but its own: at most as many as groups, and 7 of 8 of them on average
// where all of its groups have an expert.
TEST(NodeLimitedRouting, BoundsWhatCrossesNodesInAStep) {
  constexpr double kRow = kHidden * 2, kAll = 64.0 * kTokens * 4 * kLayers * kRow;
  double before = 0;
  for (const int groups : {1, 2, 4, 8}) {
    const double bytes = exchanged_by_a_micro_batch(groups);
    EXPECT_LE(bytes, kAll * groups * 7 / 8 * (1 + 1e-9)) << groups;
    EXPECT_GT(bytes, before) << groups;
    before = bytes;
  }
  EXPECT_NEAR(exchanged_by_a_micro_batch(1), kAll * 7 / 8, 1e-6 * kAll);
}

// All copies: 8 of each token, 56 of 64 ranks on other nodes.
TEST(NodeLimitedRouting, SavesNothingWhereAllCopiesAreSent) {
  constexpr double kRow = kHidden * 2, kAll = 64.0 * kTokens * 4 * kLayers * kRow;
  const double copies = exchanged_by_a_micro_batch(4, "alltoall");
  EXPECT_NEAR(copies, kAll * kCopies * 7 / 8, 0.01 * kAll);
  EXPECT_GT(copies, exchanged_by_a_micro_batch(8));
}

struct Folding {
  const char* plan;
  int dp, ep, etp;
};

// Copies of all tokens, over all ranks: the products of experts do 6 FLOPs for each of their
// elements and copy (forwards, and two gradients), whatever the groups of tensors and experts.
TEST(ParallelFolding, DoesTheSameWorkOnExperts) {
  constexpr double kMicroBatches = 2, kElements = 3 * kHidden * kWidth;
  for (const Folding& f :
       {Folding{"{dp: 64, ep: 64}", 64, 64, 1}, Folding{"{dp: 64, ep: 16}", 64, 16, 1},
        Folding{"{tp: 4, sp: true, dp: 16, ep: 64}", 16, 64, 1},
        Folding{"{tp: 4, sp: true, dp: 16, ep: 16, etp: 4}", 16, 16, 4},
        Folding{"{tp: 2, sp: true, dp: 32, ep: 8, etp: 8}", 32, 8, 8},
        Folding{"{tp: 8, sp: true, dp: 8, ep: 8, etp: 1}", 8, 8, 1}}) {
    const RunRecord record = step(8, f.plan, static_cast<int>(kMicroBatches), f.dp);
    const double flops = class_of(record, "grouped_gemm").flops * 64;
    const double tokens = kMicroBatches * f.dp * kTokens;
    EXPECT_NEAR(flops / (6 * kElements * tokens * kCopies * kLayers), 1, 1e-9) << f.plan;
  }
}

// Rows that a rank sends are those of its tokens, 1 / tp of a micro-batch's; etp ranks gather them,
// so that each works on etp times as many of 1 / etp of the columns.
TEST(ParallelFolding, GathersRowsOverTheRanksThatShareAMatrix) {
  const RunRecord apart = step(8, "{tp: 4, sp: true, dp: 16, ep: 16}", 2, 16);
  const RunRecord folded = step(8, "{tp: 4, sp: true, dp: 16, ep: 16, etp: 4}", 2, 16);
  EXPECT_EQ(class_of(apart, "dispatch ep").bytes, class_of(folded, "dispatch ep").bytes);
  EXPECT_EQ(class_of(apart, "dispatch ep").bytes, class_of(apart, "combine ep").bytes);
  EXPECT_EQ(class_of(apart, "all_gather etp").bytes, 0);
  // In either pass rows are gathered once and reduced once.
  const double rows = 2.0 * kLayers * 2 * (kTokens / 4.0) * kCopies * kHidden * 2;
  EXPECT_EQ(class_of(folded, "dispatch ep").bytes, rows);
  EXPECT_EQ(class_of(folded, "all_gather etp").bytes, rows * 4);
  EXPECT_EQ(class_of(folded, "reduce_scatter etp").bytes, rows * 4);
}

// Experts are on ep x etp ranks; copies of them on the rest reduce their gradients.
TEST(ParallelFolding, HoldsExpertsOnceInTheirGroups) {
  const auto weights = [](const std::string& plan, int dp) {
    const RunRecord record = step(8, plan, 1, dp);
    return record.find("memory.weights_bytes")->value;
  };
  constexpr double kExperts = 64 * 3 * kHidden * kWidth * kLayers * 2;
  const double of_64 = weights("{tp: 4, sp: true, dp: 16, ep: 16, etp: 4}", 16);
  EXPECT_EQ(of_64, weights("{tp: 4, sp: true, dp: 16, ep: 64}", 16));
  EXPECT_NEAR(weights("{tp: 4, sp: true, dp: 16, ep: 16}", 16) - of_64,
              kExperts / 16 - kExperts / 64, 1);
  EXPECT_NEAR(weights("{tp: 4, sp: true, dp: 16, ep: 8, etp: 2}", 16) - of_64,
              kExperts / 16 - kExperts / 64, 1);
}

}  // namespace
}  // namespace orrery::expert_plans_test
