// SPDX-License-Identifier: Apache-2.0
// What each engine puts into its iterations, by hand.
#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <vector>

#include "tests/unit/serving/fixture.h"

namespace orrery::engines_test {
namespace {

using test::Engine;

TEST(StaticBatch, RunsABatchToItsEndBeforeTheNext) {
  Engine engine("{kind: static, max_num_seqs: 2}", 1000,
                {{0, 0, 100, 1}, {1, 0, 50, 3}, {2, 0, 10, 1}});
  EXPECT_EQ(engine.step(), "P0:100 P1:50");  // the only token of 0 is that of the prefill
  EXPECT_EQ(engine.step(), "D1");            // nobody joins
  EXPECT_EQ(engine.step(), "D1");
  EXPECT_EQ(engine.step(), "P2:10");
  EXPECT_EQ(engine.step(), "");
}

TEST(Orca, LetsRequestsJoinBetweenIterations) {
  Engine engine("{kind: orca, max_num_seqs: 2}", 1000,
                {{0, 0, 100, 1}, {1, 0, 50, 3}, {2, 0, 10, 1}});
  EXPECT_EQ(engine.step(), "P0:100 P1:50");
  EXPECT_EQ(engine.step(), "D1 P2:10");
  EXPECT_EQ(engine.step(), "D1");
}

TEST(Orca, SetsTheCacheOfWholeAnswersAside) {
  // 10 + 6 - 1 = 15 tokens each: the second waits though its prompt alone would fit.
  Engine engine("{kind: orca}", 29, {{0, 0, 10, 6}, {1, 0, 10, 6}});
  EXPECT_EQ(engine.step(), "P0:10");
  EXPECT_EQ(engine.pool.used(), 15);
  for (int i = 0; i < 5; ++i) EXPECT_EQ(engine.step(), "D0");
  EXPECT_EQ(engine.step(), "P1:10");
}

TEST(Sarathi, FillsWhatDecodesLeaveOfTheBudgetWithAPrompt) {
  Engine engine("{kind: sarathi, chunk_size: 64}", 1000, {{0, 0, 64, 9}, {1, 0, 100, 2}});
  EXPECT_EQ(engine.step(), "P0:64");
  EXPECT_EQ(engine.step(), "D0 P1:63");
  EXPECT_EQ(engine.step(), "D0 P1:37");
  EXPECT_EQ(engine.step(), "D0 D1");
}

TEST(Vllm, GivesItsBudgetToRunningRequestsFirst) {
  Engine engine("{kind: vllm, max_num_batched_tokens: 100}", 1000,
                {{0, 0, 250, 3}, {1, 0, 30, 2}, {2, 0, 80, 2}});
  EXPECT_EQ(engine.step(), "P0:100");
  EXPECT_EQ(engine.step(), "P0:100");
  EXPECT_EQ(engine.step(), "P0:50 P1:30 P2:20");
  EXPECT_EQ(engine.step(), "D0 D1 P2:60");
  EXPECT_EQ(engine.step(), "D0 D2");
  EXPECT_EQ(engine.step(), "");
}

TEST(Vllm, ALongPromptLeavesRoomForOthers) {
  Engine engine("{kind: vllm, max_num_batched_tokens: 100, long_prefill_token_threshold: 40}", 1000,
                {{0, 0, 90, 2}, {1, 0, 90, 2}, {2, 0, 90, 2}});
  EXPECT_EQ(engine.step(), "P0:40 P1:40 P2:20");
  EXPECT_EQ(engine.step(), "P0:40 P1:40 P2:20");
  EXPECT_EQ(engine.step(), "P0:10 P1:10 P2:40");
}

TEST(Vllm, WithoutChunksAPromptWaitsUntilItFitsWhole) {
  Engine engine("{kind: vllm, max_num_batched_tokens: 100, enable_chunked_prefill: false}", 1000,
                {{0, 0, 70, 2}, {1, 0, 40, 2}});
  EXPECT_EQ(engine.step(), "P0:70");
  EXPECT_EQ(engine.step(), "D0 P1:40");
}

TEST(Vllm, SendsTheLastRequestBackWhereBlocksRunOut) {
  // Blocks of 16 for 48 tokens. 0 fills two blocks with 32 tokens, 1 one with 16: full.
  Engine engine("{kind: vllm}", 3, {{0, 0, 32, 4}, {1, 0, 16, 4}});
  EXPECT_EQ(engine.step(), "P0:32 P1:16");
  EXPECT_EQ(engine.step(), "D0");  // its 33rd token takes the block of 1
  ASSERT_EQ(engine.queue.waiting.size(), 1U);
  EXPECT_EQ(engine.queue.waiting[0].preemptions, 1);
  EXPECT_EQ(engine.queue.waiting[0].produced, 1);
  EXPECT_EQ(engine.step(), "D0");
  EXPECT_EQ(engine.step(), "D0");     // its last
  EXPECT_EQ(engine.step(), "P1:17");  // prompt and first token again: nothing of the answer is lost
  EXPECT_EQ(engine.queue.running[0].produced, 2);
  EXPECT_EQ(engine.step(), "D1");
  EXPECT_EQ(engine.step(), "D1");
  EXPECT_EQ(engine.pool.used(), 0);
}

/// Two prompts of six blocks in a cache of nine, iterations of two blocks; 0 has three tokens of
/// output.
Engine two_long(const std::string& keys) {
  return {
      "{kind: vllm, max_num_batched_tokens: 32, " + keys + "}", 9, {{0, 0, 90, 3}, {1, 0, 90, 3}}};
}

TEST(Vllm, WithReserveFullIslAPromptWaitsUntilTheCacheHasRoomForAllOfIt) {
  Engine engine = two_long("scheduler_reserve_full_isl: true");
  for (const char* step : {"P0:32", "P0:32", "P0:26", "D0", "D0"}) EXPECT_EQ(engine.step(), step);
  EXPECT_EQ(engine.queue.waiting.size(), 1U);  // its six blocks are free only now
  EXPECT_EQ(engine.step(), "P1:32");
  EXPECT_EQ(engine.queue.running[0].preemptions, 0);
}

TEST(Vllm, WithoutReserveFullIslAPromptJoinsWhenItsFirstPieceFits) {
  Engine engine = two_long("scheduler_reserve_full_isl: false");
  for (const char* step : {"P0:32", "P0:32"}) EXPECT_EQ(engine.step(), step);
  EXPECT_EQ(engine.step(), "P0:26 P1:6");
}

TEST(Vllm, APreemptedRequestWaitsUntilItsOutputFitsBesideItsPrompt) {
  // 0 fills two blocks and 1 one; the 33rd token of 0 takes the block of 1, whose prompt and first
  // token then need two.
  Engine engine("{kind: vllm, scheduler_reserve_full_isl: true, max_num_batched_tokens: 47}", 4,
                {{0, 0, 47, 4}, {1, 0, 16, 4}});
  EXPECT_EQ(engine.step(), "P0:47");
  EXPECT_EQ(engine.step(), "D0 P1:16");
  EXPECT_EQ(engine.step(), "D0");  // 49 tokens: the fourth block
  EXPECT_EQ(engine.queue.waiting.size(), 1U);
  EXPECT_EQ(engine.step(), "D0");
  EXPECT_EQ(engine.step(), "P1:17");
}

TEST(Vllm, TheWatermarkKeepsBlocksFreeBesideRunningRequestsOnly) {
  Engine engine("{kind: vllm, watermark: 0.5}", 8, {{0, 0, 80, 3}, {1, 0, 16, 3}});
  EXPECT_EQ(engine.step(), "P0:80");  // alone: five of eight blocks
  EXPECT_EQ(engine.step(), "D0");     // one of the three that are left would leave two, not four
  EXPECT_EQ(engine.step(), "D0");
  EXPECT_EQ(engine.step(), "P1:16");
}

/// Blocks of 16 tokens; a window of 32 takes two blocks as large.
KvRules with_windows(std::int64_t blocks) {
  KvRules rules{16, blocks};
  rules.window = 32;
  rules.window_blocks = 2;
  return rules;
}

TEST(Vllm, WindowsTakeBlocksUpToAWindowAndGiveThoseOfChunksBack) {
  Engine engine("{kind: vllm, max_num_batched_tokens: 64}", 1, {{0, 0, 128, 3}});
  engine.pool = KvPool(with_windows(100));
  EXPECT_EQ(engine.step(), "P0:64");
  EXPECT_EQ(engine.pool.used(), 4 + 4);
  EXPECT_EQ(engine.step(), "P0:64");
  EXPECT_EQ(engine.pool.used(), 8 + 6);  // 31 tokens before the chunk, and its 64
  EXPECT_EQ(engine.step(), "D0");
  EXPECT_EQ(engine.pool.used(), 9 + 2);
}

TEST(Vllm, ThePromptOfAWindowIsReservedWholeIn019AndCappedFrom021On) {
  // 512 tokens: 32 blocks, and 32 in windows, or 6 by 31 + 64 tokens; 40 are there.
  const auto next = [](const char* version) {
    Engine engine(
        std::string("{kind: vllm, max_num_batched_tokens: 64, version: \"") + version + "\"}", 1,
        {{0, 0, 512, 3}});
    engine.pool = KvPool(with_windows(40));
    return engine.step();
  };
  EXPECT_EQ(next("0.18"), "P0:64");
  EXPECT_EQ(next("0.19"), "");
  EXPECT_EQ(next("0.21"), "P0:64");
}

TEST(Vllm, RunsNoMoreThanItsSequences) {
  Engine engine("{kind: vllm, max_num_seqs: 2}", 1000, {{0, 0, 5, 2}, {1, 0, 5, 3}, {2, 0, 5, 1}});
  EXPECT_EQ(engine.step(), "P0:5 P1:5");
  EXPECT_EQ(engine.step(), "D0 D1");
  EXPECT_EQ(engine.step(), "D1 P2:5");
}

TEST(Sglang, RunsPromptsBeforeDecodesAndApartFromThem) {
  Engine engine("{kind: sglang, chunked_prefill_size: 100}", 100000,
                {{0, 0, 150, 3}, {1, 0, 30, 3}});
  EXPECT_EQ(engine.step(), "P0:100");
  EXPECT_EQ(engine.step(), "P0:50 P1:30");
  EXPECT_EQ(engine.step(), "D0 D1");
  engine.queue.waiting.push_back({.request = {2, 0, 20, 1}});
  EXPECT_EQ(engine.step(), "P2:20");  // the decodes stall
  EXPECT_EQ(engine.step(), "D0 D1");
}

TEST(Sglang, MixesDecodesInWhereItIsTold) {
  Engine engine("{kind: sglang, enable_mixed_chunk: true}", 100000, {{0, 0, 50, 3}});
  EXPECT_EQ(engine.step(), "P0:50");
  engine.queue.waiting.push_back({.request = {1, 0, 20, 2}});
  EXPECT_EQ(engine.step(), "P1:20 D0");
}

TEST(Sglang, ReservesAShareOfTheAnswersThatRun) {
  // After 0 has its prompt, 899 tokens are free; 0.7 x 299 = 209 of them are reserved for its
  // answer, and 1 needs 600 + 100: 909 of 899.
  Engine engine("{kind: sglang}", 1000, {{0, 0, 100, 300}});
  EXPECT_EQ(engine.step(), "P0:100");
  engine.queue.waiting.push_back({.request = {1, 0, 600, 100}});
  EXPECT_EQ(engine.step(), "D0");
  // With less reserved it joins: 0.35 x 298 + 700 = 804.
  Engine bold("{kind: sglang, schedule_conservativeness: 0.5}", 1000, {{0, 0, 100, 300}});
  EXPECT_EQ(bold.step(), "P0:100");
  bold.queue.waiting.push_back({.request = {1, 0, 600, 100}});
  EXPECT_EQ(bold.step(), "P1:600");
}

/// Prompts of 100 tokens or more, of which the first 64 have a hash.
Request beginning(std::int64_t id, std::int64_t prompt, std::uint64_t hash) {
  return {id, 0, prompt, 2, std::make_shared<PrefixHashes>(PrefixHashes{64, {hash}})};
}

TEST(Sglang, LooksForNewRequestsAfterSoManyDecodes) {
  Engine engine("{kind: sglang, scheduler_recv_interval: 3}", 9999, {{0, 0, 10, 20}});
  EXPECT_EQ(engine.step(), "P0:10");
  EXPECT_EQ(engine.step(), "D0");  // looks after the prompt
  engine.queue.waiting.push_back({.request = {1, 0, 10, 20}});
  EXPECT_EQ(engine.step(), "D0");
  EXPECT_EQ(engine.step(), "D0");
  EXPECT_EQ(engine.queue.waiting.size(), 1U);
  EXPECT_EQ(engine.step(), "P1:10");
  engine.queue.waiting.push_back({.request = {2, 0, 10, 1}});
  EXPECT_EQ(engine.step(), "P2:10");  // the last iteration had a prompt
}

TEST(Sglang, ByLpmTheLongestKeptPrefixJoinsFirst) {
  const auto next = [](const std::string& policy) {
    Engine engine("{kind: sglang, chunked_prefill_size: 100, schedule_policy: " + policy + "}",
                  9999, {beginning(0, 100, 7)});
    EXPECT_EQ(engine.step(), "P0:100");
    EXPECT_EQ(engine.step(), "D0");  // its first 64 tokens stay
    engine.queue.waiting.push_back({.request = beginning(1, 150, 8)});
    engine.queue.waiting.push_back({.request = beginning(2, 110, 7)});
    return engine.step();
  };
  EXPECT_EQ(next("fcfs"), "P1:100");
  EXPECT_EQ(next("lpm"), "P2:46 P1:54");
}

TEST(Sglang, ByLpmWhoBeginsAsAnotherWaitsForIt) {
  Engine engine("{kind: sglang, chunked_prefill_size: 100, schedule_policy: lpm}", 9999,
                {beginning(0, 100, 7), beginning(1, 100, 7), beginning(2, 100, 8)});
  EXPECT_EQ(engine.step(), "P0:100");
  EXPECT_EQ(engine.step(), "P1:36 P2:64");  // 64 of 1 are kept by now
  Engine fcfs("{kind: sglang, chunked_prefill_size: 200}", 9999,
              {beginning(0, 100, 7), beginning(1, 100, 7), beginning(2, 100, 8)});
  EXPECT_EQ(fcfs.step(), "P0:100 P1:100");  // the same tokens twice
  Engine lpm("{kind: sglang, chunked_prefill_size: 200, schedule_policy: lpm}", 9999,
             {beginning(0, 100, 7), beginning(1, 100, 7), beginning(2, 100, 8)});
  EXPECT_EQ(lpm.step(), "P0:100 P2:100");
}

TEST(Sglang, ByLpmALongQueueStaysInItsOrder) {
  std::vector<Request> requests = {beginning(0, 100, 1000)};
  Engine engine("{kind: sglang, chunked_prefill_size: 100, schedule_policy: lpm}", 99999, requests);
  EXPECT_EQ(engine.step(), "P0:100");
  EXPECT_EQ(engine.step(), "D0");
  for (std::int64_t i = 1; i <= 128; ++i)
    engine.queue.waiting.push_back({.request = beginning(i, 100, static_cast<std::uint64_t>(i))});
  engine.queue.waiting.push_back({.request = beginning(129, 110, 1000)});
  EXPECT_EQ(engine.step(), "P1:100");         // 129 wait: nothing is looked up
  EXPECT_EQ(engine.step(), "P129:46 P2:54");  // 128 wait
}

TEST(Sglang, ByLofTheLongestAnswerJoinsFirst) {
  Engine engine("{kind: sglang, chunked_prefill_size: 100, schedule_policy: lof}", 9999,
                {{0, 0, 100, 5}, {1, 0, 100, 50}});
  EXPECT_EQ(engine.step(), "P1:100");
}

TEST(Sglang, RetractsTheShortestAnswerWhereTheCacheIsFull) {
  Engine engine("{kind: sglang, schedule_conservativeness: 0.01}", 64,
                {{0, 0, 20, 20}, {1, 0, 30, 20}});
  EXPECT_EQ(engine.step(), "P0:20");  // room for 44: 30 + 20 do not fit beside it
  EXPECT_EQ(engine.queue.waiting.size(), 1U);
  Engine tight("{kind: sglang, schedule_conservativeness: 0.01}", 64,
               {{0, 0, 20, 24}, {1, 0, 15, 20}});
  EXPECT_EQ(tight.step(), "P0:20");
  EXPECT_EQ(tight.step(), "P1:15");  // of 0 next to nothing is reserved once it runs
  int steps = 0;
  while (tight.queue.waiting.empty()) {
    ASSERT_LT(++steps, 30);
    tight.step();
  }
  // 35 + 2 n <= 64: after 14 decodes of both 63 tokens are held, and two more have no room.
  EXPECT_EQ(steps, 15);
  EXPECT_EQ(tight.queue.waiting[0].request.id, 0);  // equal answers: the longer prompt goes first
}

TEST(Sglang, ARetractedRequestGoesToTheEndOfTheQueue) {
  Engine engine("{kind: sglang, schedule_conservativeness: 0.01}", 64,
                {{0, 0, 20, 24}, {1, 0, 15, 20}});
  engine.step();
  engine.step();
  engine.queue.waiting.push_back({.request = {2, 0, 40, 4}});
  for (int i = 0; i < 30 && engine.queue.waiting.size() < 2; ++i) engine.step();
  ASSERT_EQ(engine.queue.waiting.size(), 2U);
  EXPECT_EQ(engine.queue.waiting[0].request.id, 2);
  EXPECT_EQ(engine.queue.waiting[1].request.id, 0);
}

TEST(Sglang, AfterARequestFoundNoRoomNobodyJoinsUntilARunningOneLeaves) {
  Engine engine("{kind: sglang}", 1000, {{0, 0, 100, 300}, {1, 0, 10, 3}});
  EXPECT_EQ(engine.step(), "P0:100 P1:10");
  engine.queue.waiting.push_back({.request = {2, 0, 600, 100}});
  EXPECT_EQ(engine.step(), "D0 D1");  // no room for 2
  engine.queue.waiting.push_front({.request = {3, 0, 1, 1}});
  EXPECT_EQ(engine.step(), "D0 D1");  // nor is 3 looked at; 1 ends
  EXPECT_EQ(engine.step(), "P3:1");
}

TEST(TensorrtLlm, APromptWhoseNextBlocksAnotherFillsWaitsForThem) {
  Engine engine("{kind: tensorrt_llm}", 1000,
                {beginning(0, 100, 7), beginning(1, 100, 7), beginning(2, 100, 8)});
  EXPECT_EQ(engine.step(), "P0:100 P2:100");
  EXPECT_EQ(engine.step(), "D0 D2 P1:36");
}

TEST(TensorrtLlm, From10OnGraphsAreOfSingleSizesUpTo128) {
  const auto graph = [](const char* version, std::int64_t batch) {
    return test::read_of<SchedulerConfig>(std::string("{kind: tensorrt_llm, version: \"") +
                                          version + "\"}")
        ->runs_graph(batch, true);
  };
  EXPECT_TRUE(graph("1.2", 32));
  EXPECT_FALSE(graph("1.2", 33));
  EXPECT_TRUE(graph("1.2", 128));
  EXPECT_FALSE(graph("1.2", 129));
}

TEST(Sglang, From0510OnPromptsRunAsPaddedGraphs) {
  const auto engine = [](const char* version) {
    return test::read_of<SchedulerConfig>(std::string("{kind: sglang, version: ") + version + "}");
  };
  EXPECT_EQ(engine("0.5.9")->padded(1030, false), 1030);
  EXPECT_EQ(engine("0.5.10")->padded(1030, false), 1280);
  EXPECT_EQ(engine("0.5.2")->padded(9, true), 16);
  EXPECT_EQ(engine("0.5.3")->padded(9, true), 12);
}

TEST(TensorrtLlm, GuaranteesThatNobodyIsSentBack) {
  // Blocks of 32: 0 needs 2 for 33 + 30 tokens, as does 1; there are three.
  Engine engine("{kind: tensorrt_llm}", 3, {{0, 0, 33, 30}, {1, 0, 33, 30}});
  EXPECT_EQ(engine.step(), "P0:33");
  EXPECT_EQ(engine.step(), "D0");
}

TEST(TensorrtLlm, MaxUtilizationPausesTheLast) {
  Engine engine("{kind: tensorrt_llm, capacity_scheduler_policy: MAX_UTILIZATION}", 2,
                {{0, 0, 32, 4}, {1, 0, 31, 4}});
  EXPECT_EQ(engine.step(), "P0:32 P1:31");
  EXPECT_EQ(engine.step(), "D0");  // the block that it begins was that of 1
  EXPECT_EQ(engine.queue.waiting.size(), 1U);
}

TEST(TensorrtLlm, TakesPromptsWholeBesideAnswers) {
  Engine engine("{kind: tensorrt_llm, max_num_tokens: 100}", 1000,
                {{0, 0, 60, 3}, {1, 0, 99, 2}, {2, 0, 1, 1}});
  EXPECT_EQ(engine.step(), "P0:60");
  EXPECT_EQ(engine.step(), "D0 P1:99");
  Engine chunked("{kind: tensorrt_llm, max_num_tokens: 100, enable_chunked_prefill: true}", 1000,
                 {{0, 0, 60, 3}, {1, 0, 99, 2}});
  EXPECT_EQ(chunked.step(), "P0:60 P1:40");
}

BatchShape shape_of(std::int64_t decodes, const std::vector<Chunk>& chunks) {
  return {.sequences = decodes, .longest = 10, .context = 10 * decodes, .chunks = chunks};
}

TEST(TensorrtLlm, PromptsWaitUntilEveryRankHasOne) {
  const auto engine = test::read_of<SchedulerConfig>(
      "{kind: tensorrt_llm, attention_dp_config: {enable_balance: true, timeout_iters: 3, "
      "batching_wait_iters: 1}}");
  const auto policy = engine->ranks_policy();
  const std::vector<Chunk> prompt = {{100, 0, true}};
  const std::vector<BatchShape> one = {shape_of(2, prompt), shape_of(2, {})};
  const std::vector<BatchShape> both = {shape_of(2, prompt), shape_of(2, prompt)};
  const std::vector<BatchShape> idle = {shape_of(0, prompt), shape_of(2, {})};
  EXPECT_TRUE(policy->puts_off_prompts(one));
  EXPECT_TRUE(policy->puts_off_prompts(one));
  EXPECT_FALSE(policy->puts_off_prompts(one));  // the third iteration
  EXPECT_TRUE(policy->puts_off_prompts(both));  // one more, for more of them
  EXPECT_FALSE(policy->puts_off_prompts(both));
  EXPECT_FALSE(policy->puts_off_prompts(idle));  // a rank has nothing else to do
}

TEST(TensorrtLlm, PromptsOfOneRankWaitUntilAnIterationIsFullEnough) {
  const auto engine = test::read_of<SchedulerConfig>(
      "{kind: tensorrt_llm, max_num_tokens: 1000, batch_wait_timeout_iters: 2, "
      "batch_wait_max_tokens_ratio: 0.5}");
  const auto policy = engine->ranks_policy();
  const std::vector<Chunk> few = {{497, 0, true}}, more = {{400, 98, true}};
  const std::vector<BatchShape> short_of = {shape_of(2, few)}, full = {shape_of(2, more)};
  EXPECT_TRUE(policy->puts_off_prompts(short_of));  // 499 of 500
  EXPECT_FALSE(policy->puts_off_prompts(full));
  EXPECT_TRUE(policy->puts_off_prompts(short_of));
  EXPECT_TRUE(policy->puts_off_prompts(short_of));
  EXPECT_FALSE(policy->puts_off_prompts(short_of));
  const std::vector<BatchShape> alone = {shape_of(0, few)};
  EXPECT_FALSE(policy->puts_off_prompts(alone));
}

TEST(TensorrtLlm, WithoutWaitsRanksDoNotLookAtEachOther) {
  EXPECT_EQ(test::read_of<SchedulerConfig>("{kind: tensorrt_llm}")->ranks_policy(), nullptr);
}

TEST(Vllm, MarlinWidensWhereItIsAskedFor) {
  EXPECT_EQ(test::read_of<SchedulerConfig>("{kind: vllm}")->kernels.experts,
            ExpertKernels::kMeasured);
  EXPECT_EQ(test::read_of<SchedulerConfig>("{kind: vllm, moe_backend: marlin}")->kernels.experts,
            ExpertKernels::kMarlin);
}

// Defaults of another engine than the one that is meant would go unseen.
TEST(Engines, AreNamed) {
  EXPECT_EQ(test::read_of<SchedulerConfig>("{kind: vllm, max_num_seqs: 3}")->kind, "vllm");
  EXPECT_THROW(test::read_of<SchedulerConfig>("{max_num_seqs: 3}"), config::ConfigError);
  EXPECT_THROW(test::read_of<SchedulerConfig>("{kind: vlm}"), config::ConfigError);
}

TEST(Vllm, ByPriorityTheFirstInItsOrderJoins) {
  std::vector<Request> requests;
  for (int i = 0; i < 3; ++i)
    requests.push_back({.id = i, .prompt = 10, .output = 2, .priority = i == 2 ? 0 : 1});
  test::Engine fcfs("{kind: vllm, max_num_seqs: 1}", 100, requests);
  EXPECT_EQ(fcfs.step(), "P0:10");
  test::Engine engine("{kind: vllm, max_num_seqs: 1, scheduling_policy: priority}", 100, requests);
  EXPECT_EQ(engine.step(), "P2:10");
  EXPECT_EQ(engine.step(), "D2");
  EXPECT_EQ(engine.step(), "P0:10");
}

TEST(Vllm, ByPriorityWhoComesLastInItIsDropped) {
  // Four blocks of 4 tokens. Both have two, full with the 8th token: for the next one of request 0,
  // the urgent one, request 1 goes; without priorities it would be the same place, of the last.
  std::vector<Request> requests = {{.id = 0, .prompt = 7, .output = 5, .priority = 1},
                                   {.id = 1, .prompt = 7, .output = 5, .priority = 0}};
  const std::string keys = ", block_size: 4}";
  test::Engine by_priority("{kind: vllm, scheduling_policy: priority" + keys, 4, requests);
  EXPECT_EQ(by_priority.step(), "P1:7 P0:7");
  EXPECT_EQ(by_priority.step(), "D1 D0");
  EXPECT_EQ(by_priority.step(), "D1");
  test::Engine fcfs("{kind: vllm" + keys, 4, requests);
  EXPECT_EQ(fcfs.step(), "P0:7 P1:7");
  EXPECT_EQ(fcfs.step(), "D0 D1");
  EXPECT_EQ(fcfs.step(), "D0");
}

std::int64_t padded(const std::string& keys, std::int64_t tokens, bool decodes = true) {
  return test::read_of<SchedulerConfig>(keys)->padded(tokens, decodes);
}

TEST(TensorrtLlm, RunsAnswersAsTheNextLargerGraph) {
  const std::string keys = "{kind: tensorrt_llm, max_batch_size: 640, cuda_graph_config: ";
  const std::string graphs = keys + "{enable_padding: true, batch_sizes: [1, 2, 4, 512, 1024]}}";
  for (const auto& [tokens, size] : std::vector<std::pair<std::int64_t, std::int64_t>>{
           {1, 1}, {3, 4}, {5, 512}, {513, 640}, {640, 640}})
    EXPECT_EQ(padded(graphs, tokens), size) << tokens;
  EXPECT_EQ(padded(graphs, 3, false), 3);  // prompts are no part of a graph
  EXPECT_EQ(padded("{kind: tensorrt_llm}", 3), 3);
  const auto runs = [](const std::string& engine, std::int64_t tokens) {
    return test::read_of<SchedulerConfig>(engine)->runs_graph(tokens, true);
  };
  EXPECT_TRUE(runs(graphs, 600));
  EXPECT_FALSE(runs(keys + "{batch_sizes: [1, 2, 4]}}", 3));
  EXPECT_FALSE(runs(keys + "{enable_padding: true, batch_sizes: [1, 2, 4]}}", 5));
  EXPECT_TRUE(runs("{kind: tensorrt_llm}", 3));
}

TEST(Vllm, BatchesRunTheNextLargerGraph) {
  for (const auto& [tokens, size] : std::map<std::int64_t, std::int64_t>{
           {1, 1}, {2, 2}, {3, 4}, {5, 8}, {250, 256}, {257, 272}, {512, 512}, {513, 513}})
    EXPECT_EQ(padded("{kind: vllm, version: 0.11.1}", tokens), size) << tokens;
  EXPECT_EQ(padded("{kind: vllm, version: 0.11}", 257), 264);
  EXPECT_EQ(padded("{kind: vllm, enforce_eager: true}", 5), 5);
  EXPECT_EQ(padded("{kind: vllm, max_num_seqs: 16}", 33), 33);
}

TEST(EngineSizes, OfAUserReplaceThoseOfTheVersion) {
  const std::string vllm = "{kind: vllm, cudagraph_sizes: [{to: 10, step: 5}, {to: 40, step: 20}]}";
  for (const auto& [tokens, size] :
       std::map<std::int64_t, std::int64_t>{{1, 5}, {10, 10}, {11, 20}, {40, 40}, {41, 41}})
    EXPECT_EQ(padded(vllm, tokens), size) << tokens;
  EXPECT_EQ(padded("{kind: sglang, prefill_graph_sizes: [{step: 100}]}", 13, false), 100);
}

TEST(EngineSizes, RefuseRowsThatDoNotAscend) {
  for (const char* rows : {"{to: 8, step: 8}, {to: 8, step: 16}", "{step: 8}, {to: 64, step: 16}"})
    EXPECT_THAT(
        [&] {
          test::read_of<SchedulerConfig>(std::string("{kind: vllm, cudagraph_sizes: [") + rows +
                                         "]}");
        },
        testing::ThrowsMessage<config::ConfigError>(testing::HasSubstr("rows must ascend")));
}

TEST(TtTransformers, RowsAreFilledUpToTilesAndPromptsToCompiledLengths) {
  for (const auto& [tokens, rows] :
       std::map<std::int64_t, std::int64_t>{{1, 32}, {32, 32}, {33, 64}})
    EXPECT_EQ(padded("{kind: tt_transformers}", tokens), rows) << tokens;
  for (const auto& [tokens, rows] : std::map<std::int64_t, std::int64_t>{
           {5, 128}, {129, 256}, {2000, 2048}, {2049, 4096}, {4097, 6144}})
    EXPECT_EQ(padded("{kind: tt_transformers}", tokens, false), rows) << tokens;
}

TEST(Sglang, OnlyDecodesRunGraphs) {
  EXPECT_EQ(padded("{kind: sglang}", 13), 16);
  EXPECT_EQ(padded("{kind: sglang}", 17), 24);
  EXPECT_EQ(padded("{kind: sglang}", 13, false), 13);
  EXPECT_EQ(padded("{kind: sglang, cuda_graph_max_bs: 0}", 13), 13);
}

}  // namespace
}  // namespace orrery::engines_test
