// SPDX-License-Identifier: Apache-2.0
#include "workloads/steps/inference/two_batches.h"
#include "workloads/software/engine_switches.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/workloads/example_models.h"
#include "workloads/layers/layers.h"
#include "workloads/steps/figures/statistics.h"

namespace orrery::two_batches_test {
namespace {

InferenceConfig spread_decode(std::int64_t sequences) {
  InferenceConfig config;
  config.parallel.dp = config.parallel.ep = 8;
  config.micro_batch = sequences;
  config.kv_length = 16;
  config.two_batch_overlap = true;
  return config;
}

std::vector<std::string> operators_of(const Program& program, const std::string& part) {
  std::vector<std::string> names;
  const OperatorGraph& block = program.blocks.front();
  for (OperatorId id = 0; id < block.size(); ++id)
    if (block[id].name.find(part) != std::string::npos) names.push_back(block[id].name);
  return names;
}

TEST(TwoBatches, EveryOtherDecodeIsInTheFirst) {
  const auto [first, second] = halves({{}, {{100, 3}, {200, 1}, {300, 5}}, 2});
  // 100 a, 100 b, 100 a, 200 b, then 300 a, b, a, b, a.
  ASSERT_EQ(first.decodes.size(), 2u);
  EXPECT_EQ(first.decodes[0].count, 2);
  EXPECT_EQ(first.decodes[1].context, 300);
  EXPECT_EQ(first.decodes[1].count, 3);
  ASSERT_EQ(second.decodes.size(), 3u);
  EXPECT_EQ(second.decodes[1].context, 200);
  EXPECT_EQ(first.tokens(), 10);
  EXPECT_EQ(second.tokens(), 8);
  EXPECT_EQ(second.queries, 2);
}

TEST(TwoBatches, PromptsAreCutInTheMiddleOfTheirTokens) {
  // 600 tokens: 200, and 100 of a prompt of 300 whose rest sees them, and the last.
  const auto [first, second] =
      halves({{{200, 0, 1, true}, {300, 50, 1, true}, {100, 7, 1, false}}, {}});
  ASSERT_EQ(first.chunks.size(), 2u);
  EXPECT_EQ(first.chunks[1].tokens, 100);
  EXPECT_EQ(first.chunks[1].context, 50);
  EXPECT_FALSE(first.chunks[1].samples);  // its next token comes of the rest
  ASSERT_EQ(second.chunks.size(), 2u);
  EXPECT_EQ(second.chunks[0].tokens, 200);
  EXPECT_EQ(second.chunks[0].context, 150);
  EXPECT_TRUE(second.chunks[0].samples);
  EXPECT_FALSE(second.chunks[1].samples);
}

TEST(TwoBatches, PromptsAlikeAreDealtOutWhole) {
  const auto [first, second] = halves({{{100, 0, 5, true}}, {}});
  EXPECT_EQ(first.tokens(), 250);
  EXPECT_EQ(second.tokens(), 250);
  EXPECT_EQ(first.chunks[0].count, 2);
  EXPECT_EQ(first.chunks[1].tokens, 50);
  EXPECT_EQ(second.chunks[0].context, 50);
  EXPECT_EQ(second.chunks[1].count, 2);
}

TEST(TwoBatches, NothingIsLostOfAnyBatch) {
  for (const std::int64_t tokens : {1, 2, 7, 511, 4096}) {
    for (const std::int64_t count : {1, 2, 3}) {
      const MixedBatch batch{{{tokens, 5, count, true}, {9, 0, 2, true}}, {{30, count}}, 3};
      const auto both = halves(batch);
      EXPECT_EQ(both[0].tokens() + both[1].tokens(), batch.tokens());
      EXPECT_LE(std::abs(both[0].tokens() - both[1].tokens()), 1 + batch.queries);
    }
  }
}

TEST(TwoBatches, SmallStepsAreOne) {
  InferenceConfig config = spread_decode(31);
  EXPECT_FALSE(runs_two_batches(config, 31, true));
  EXPECT_TRUE(runs_two_batches(config, 32, true));
  EXPECT_FALSE(runs_two_batches(config, 511, false));
  EXPECT_TRUE(runs_two_batches(config, 512, false));
  config.two_batch_overlap = false;
  EXPECT_FALSE(runs_two_batches(config, 5000, false));
}

TEST(TwoBatches, KernelsOfOneAreIssuedBehindExchangesOfTheOther) {
  LlmConfig model = small_moe(3);
  model.layers[0].moe = false;
  InferenceConfig config = spread_decode(32);
  config.kernels.set(kDecodesByStages, false);
  const Program program = build_inference(model, config);
  // A layer without experts works on all tokens.
  EXPECT_THAT(operators_of(program, "layer 0 qkv"), testing::ElementsAre("layer 0 qkv"));
  EXPECT_THAT(operators_of(program, "layer 1 first qkv"), testing::SizeIs(1));
  std::vector<std::string> order;
  for (const std::string& name : operators_of(program, "layer"))
    for (const char* part : {"dispatch", "expert up", "combine", "combine add"})
      if (name.ends_with(part) && name.find("shared") == std::string::npos)
        order.push_back(name.substr(6));
  EXPECT_THAT(
      order, testing::ElementsAre("1 first dispatch", "1 second dispatch", "1 first expert up",
                                  "1 first combine", "1 second expert up", "1 second combine",
                                  "1 first combine add", "2 first dispatch", "1 second combine add",
                                  "2 second dispatch", "2 first expert up", "2 first combine",
                                  "2 second expert up", "2 second combine", "2 first combine add",
                                  "2 second combine add"));
  EXPECT_THAT(operators_of(program, "merge"), testing::ElementsAre("merge batches"));
}

TEST(TwoBatches, OfDecodesTheSecondIsTwoStagesBehind) {
  const Program program = build_inference(small_moe(1), spread_decode(32));
  std::vector<std::string> order;
  for (const std::string& name : operators_of(program, "layer"))
    for (const char* part :
         {"qkv", "attention", "dispatch", "dispatch receive", "combine", "combine add"})
      if (name == std::string("layer 0 first ") + part ||
          name == std::string("layer 0 second ") + part)
        order.push_back(name.substr(8));
  EXPECT_THAT(
      order, testing::ElementsAre("first qkv", "first attention", "first dispatch", "second qkv",
                                  "first dispatch receive", "first combine", "second attention",
                                  "first combine add", "second dispatch", "second dispatch receive",
                                  "second combine", "second combine add"));
}

TEST(TwoBatches, DoTheWorkOfOneAndReadWeightsTwice) {
  const LlmConfig model = small_moe(1);
  InferenceConfig config = spread_decode(64);
  const ProgramStatistics two = program_statistics(build_inference(model, config));
  config.two_batch_overlap = false;
  const ProgramStatistics one = program_statistics(build_inference(model, config));
  EXPECT_DOUBLE_EQ(two.matrix_flops().base(), one.matrix_flops().base());
  // Bytes that halving a batch does not halve: the matrices of 64 x 128 (queries, keys, values),
  // 64 x 64 (output), the router's 64 x 8, three of 64 x 32 of the shared expert and as many of the
  // one routed expert here, 2 bytes each; the merge reads and writes 64 tokens twice; and kernels
  // of two batches fetch what was dispatched and send the results: 128 rows of 64, read and
  // written.
  const auto bytes = [](const Program& program) {
    double sum = 0;
    const OperatorGraph& block = program.blocks.front();
    for (OperatorId id = 0; id < block.size(); ++id) {
      if (block[id].kind != OperatorKind::kCompute) continue;
      const Kernel& kernel = program.kernels[block[id].work];
      sum += (kernel.read + kernel.written).base();
    }
    return sum;
  };
  config.two_batch_overlap = true;
  const double both = bytes(build_inference(model, config));
  config.two_batch_overlap = false;
  const double alone = bytes(build_inference(model, config));
  const double weights = 2.0 * (64 * 128 + 64 * 64 + 64 * 8 + 2 * 3 * 64 * 32);
  const double merge = 2 * 2 * 2.0 * 64 * 64;
  const double moved = 2 * 2 * 2.0 * 128 * 64;
  EXPECT_NEAR(both - alone, weights + merge + moved, 1e-3 * weights);
}

TEST(TwoBatches, ExchangesOfDecodesHoldNoUnitsOnTheWay) {
  const LlmConfig model = small_moe(1);
  const auto hooks = [&](const InferenceConfig& config) {
    std::vector<bool> all;
    for (const Transfer& transfer : build_inference(model, config).transfers)
      if (transfer.routing) all.push_back(transfer.routing->hook);
    return all;
  };
  EXPECT_THAT(hooks(spread_decode(64)), testing::Each(true));
  EXPECT_THAT(hooks(spread_decode(8)), testing::Each(false));  // too few for two batches
  InferenceConfig prompts = spread_decode(4);
  prompts.phase = Phase::kPrefill;
  prompts.sequence = 256;
  EXPECT_THAT(hooks(prompts), testing::Each(false));
}

}  // namespace
}  // namespace orrery::two_batches_test
