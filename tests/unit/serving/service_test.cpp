// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "tests/unit/serving/fixture.h"

namespace orrery::service_test {
namespace {

using test::Given;
using test::PricedBy;
using ::testing::HasSubstr;

constexpr Picoseconds kMicrosecond = 1'000'000;

/// 10 us, and 1 us for each new token.
Picoseconds linear(const BatchShape& shape) {
  return (10 + static_cast<Picoseconds>(shape.tokens())) * kMicrosecond;
}

struct Fleet {
  std::string engine = "{kind: vllm}";
  std::int64_t blocks = 100000;
  int replicas = 1, ranks = 1, lanes = 1;
  std::string router = "round_robin";
  Slowness slowness = {};
  Seconds report_interval = {};
};

struct Ran {
  ServingLog log;
  std::vector<Instance> instances;
  Picoseconds end = 0;

  const ServedRequest& of(std::int64_t id) const {
    return *std::find_if(log.served().begin(), log.served().end(),
                         [id](const ServedRequest& a) { return a.id == id; });
  }
};

Ran serve(RequestSource& source, const Fleet& fleet = {},
          std::function<Picoseconds(const BatchShape&)> price = linear) {
  const auto engine = test::engine_of(fleet.engine);
  PricedBy pricer(std::move(price));
  const EngineMemory memory = engine->memory();
  Ran ran;
  for (int i = 0; i < fleet.replicas; ++i)
    ran.instances.emplace_back(
        *engine.object, pricer,
        InstanceRules{.kv = {memory.block_tokens, fleet.blocks, memory.prefix_caching},
                      .ranks = fleet.ranks,
                      .lanes = fleet.lanes,
                      .slowness = fleet.slowness});
  const auto router = Routers::at("router", fleet.router)();
  Service service(ran.instances, *router, source, ran.log, nullptr,
                  LoadReports(fleet.report_interval));
  service.run();
  ran.end = service.now();
  return ran;
}

Ran serve(std::vector<Request> requests, const Fleet& fleet = {},
          std::function<Picoseconds(const BatchShape&)> price = linear) {
  Given source(std::move(requests));
  return serve(source, fleet, std::move(price));
}

TEST(Instance, WhatComesWhileABatchRunsMissesTheOneThatIsPreparedBesideIt) {
  // Iterations of 10 us and 1 us a token: a prompt of 10 until 20 us, tokens until 31, 42, 53 us.
  // The second comes at 25 us, when the batch from 31 us on is put together already.
  std::vector<Request> requests = {
      {.id = 0, .prompt = 10, .output = 9},
      {.id = 1, .arrival = 25 * kMicrosecond, .prompt = 4, .output = 1}};
  const std::string prepared = "{kind: vllm, async_scheduling: true, enforce_eager: true}";
  EXPECT_EQ(serve(requests, {.engine = "{kind: vllm}"}).of(1).started, 31 * kMicrosecond);
  EXPECT_EQ(serve(requests, {.engine = prepared}).of(1).started, 42 * kMicrosecond);
  // Alone it waits for nothing.
  requests[0].output = 2;
  EXPECT_EQ(serve(requests, {.engine = prepared}).of(1).started, 31 * kMicrosecond);
}

TEST(Instance, BatchesOfAPipelineFollowEachOtherFromStageToStage) {
  // Two stages: each of four requests alone takes 10 us + 100 and then 10 + 1 for a token. The
  // second batch enters when the first has left the first stage, and leaves half of its time after
  // the first has left.
  std::vector<Request> requests;
  for (int i = 0; i < 2; ++i) requests.push_back({.id = i, .prompt = 100, .output = 2});
  const Ran ran = serve(requests, {.lanes = 2});
  EXPECT_EQ(ran.of(0).first_token, 110 * kMicrosecond);
  EXPECT_EQ(ran.of(1).started, 55 * kMicrosecond);
  EXPECT_EQ(ran.of(1).first_token, 165 * kMicrosecond);
  EXPECT_EQ(ran.of(0).last_token, 165 * kMicrosecond + 11 * kMicrosecond / 2);
  EXPECT_EQ(ran.instances[0].busy_time(), ran.end);
}

TEST(Instance, APipelineOfStagesGivesAsManyTimesTheTokens) {
  std::vector<Request> requests;
  for (int i = 0; i < 64; ++i) requests.push_back({.id = i, .prompt = 1, .output = 400});
  // A batch takes the same whatever is in it: four in flight give four times as much.
  const auto constant = [](const BatchShape&) { return Picoseconds{40} * kMicrosecond; };
  const double one = static_cast<double>(serve(requests, {}, constant).end);
  const double four = static_cast<double>(serve(requests, {.lanes = 4}, constant).end);
  EXPECT_NEAR(four / one, 1, 0.01);  // as long for a token of each, but a quarter in each batch
  EXPECT_EQ(serve(requests, {.lanes = 4}, constant).instances[0].iterations(), 4 * 400);
}

TEST(Service, OneRequestTakesItsPrefillAndItsDecodes) {
  const Ran ran = serve({{0, 5 * kMicrosecond, 100, 4}});
  const ServedRequest& a = ran.of(0);
  EXPECT_EQ(a.started, 5 * kMicrosecond);
  EXPECT_EQ(a.first_token, (5 + 110) * kMicrosecond);
  EXPECT_EQ(a.last_token, (5 + 110 + 3 * 11) * kMicrosecond);
  EXPECT_EQ(ran.instances[0].iterations(), 4);
  EXPECT_EQ(ran.instances[0].busy_time(), 143 * kMicrosecond);
  EXPECT_EQ(ran.log.gaps().count(), 3);
  EXPECT_DOUBLE_EQ(ran.log.gaps().mean(), 11.0 * kMicrosecond);
}

TEST(Service, WhoComesTogetherRunsTogether) {
  const Ran ran = serve({{0, 0, 100, 2}, {1, 0, 50, 2}});
  EXPECT_EQ(ran.of(0).first_token, 160 * kMicrosecond);
  EXPECT_EQ(ran.of(1).first_token, 160 * kMicrosecond);
  EXPECT_EQ(ran.end, 172 * kMicrosecond);
}

TEST(Service, AnArrivalWaitsForTheIterationUnderWay) {
  const Ran ran = serve({{0, 0, 100, 3}, {1, kMicrosecond, 50, 1}});
  EXPECT_EQ(ran.of(1).started, 110 * kMicrosecond);
  EXPECT_EQ(ran.of(1).first_token, (110 + 61) * kMicrosecond);
  EXPECT_EQ(ran.of(0).last_token, (110 + 61 + 11) * kMicrosecond);
}

TEST(Service, TokensInAreTokensOut) {
  const auto config = test::read_of<RequestSourceConfig>(
      "{rate: 2000 /s, requests: 500, input: {uniform: [1, 300]}, output: {uniform: [1, 60]}}");
  const std::vector<Request> requests = test::all_of(*config->make());
  std::int64_t priced = 0;
  const Ran ran = serve(requests, {.blocks = 60}, [&](const BatchShape& shape) {
    priced += shape.tokens();
    return linear(shape);
  });
  ASSERT_EQ(ran.log.served().size(), requests.size());
  std::int64_t computed = 0, preemptions = 0;
  for (const ServedRequest& a : ran.log.served()) {
    const Request& r = requests[static_cast<std::size_t>(a.id)];
    EXPECT_EQ(a.arrival, r.arrival);
    EXPECT_EQ(a.prompt, r.prompt);
    EXPECT_EQ(a.output, r.output);
    EXPECT_LE(a.arrival, a.started);
    EXPECT_LT(a.started, a.first_token);
    EXPECT_LE(a.first_token, a.last_token);
    computed += r.prompt + r.output - 1;
    preemptions += a.preemptions;
  }
  EXPECT_GT(preemptions, 0);
  EXPECT_GT(priced, computed);  // what was dropped is computed again
  EXPECT_EQ(ran.instances[0].used_blocks(), 0);
}

TEST(Service, EveryEngineAnswersAllAndLeaksNoBlock) {
  const auto config = test::read_of<RequestSourceConfig>(
      "{rate: 3000 /s, requests: 400, input: {uniform: [1, 300]}, output: {uniform: [1, 60]}}");
  for (const auto& [name, item] : config::Registered<SchedulerConfig>::items()) {
    const auto engine = test::read_of<SchedulerConfig>("{kind: " + name + "}");
    for (const int lanes : {1, 3}) {
      const auto source = config->make();
      const Ran ran = serve(*source, {.engine = "{kind: " + name + "}",
                                      .blocks = 1200 / engine->memory().block_tokens,
                                      .lanes = lanes});
      EXPECT_EQ(ran.log.served().size(), 400U) << name;
      EXPECT_EQ(ran.instances[0].used_blocks(), 0) << name;
    }
  }
}

TEST(Service, ARequestThatFitsNowhereIsAnError) {
  const auto fault = [](const Fleet& fleet, const Request& request) {
    try {
      serve({request}, fleet);
    } catch (const std::overflow_error& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  EXPECT_THAT(fault({.blocks = 4}, {0, 0, 50, 30}), HasSubstr("cache of 64 tokens"));
  EXPECT_EQ(fault({.blocks = 4}, {0, 0, 50, 15}), "");
  EXPECT_THAT(fault({.engine = "{kind: tensorrt_llm, max_num_tokens: 100}"}, {0, 0, 101, 2}),
              HasSubstr("request 0 of 101 + 2 tokens never gets into an iteration"));
}

TEST(Service, RouterSpreadsRequests) {
  std::vector<Request> requests;
  for (int i = 0; i < 6; ++i) requests.push_back({i, 0, 100, 2});
  const Ran ran = serve(requests, {.replicas = 3});
  EXPECT_EQ(ran.of(4).instance, 1);
  EXPECT_EQ(ran.end, (210 + 12) * kMicrosecond);
}

TEST(Service, LeastLoadedAvoidsTheBusyInstance) {
  // 0 runs for long on instance 0; those after it, one at a time, go to the idle one.
  const Ran ran =
      serve({{0, 0, 10, 100}, {1, 30 * kMicrosecond, 10, 1}, {2, 90 * kMicrosecond, 10, 1}},
            {.replicas = 2, .router = "least_loaded"});
  EXPECT_EQ(ran.of(1).instance, 1);
  EXPECT_EQ(ran.of(2).instance, 1);
}

/// Requests by the number of the instance that answered them.
std::vector<int> by_instance(const Ran& ran) {
  std::vector<int> counts(ran.instances.size());
  for (const ServedRequest& a : ran.log.served()) ++counts[static_cast<std::size_t>(a.instance)];
  return counts;
}

/// vLLM's time of a request before it waits, in which routers saw nothing of it once.
constexpr const char* kParses = "{kind: vllm, host: {request: 21.6 ms}}";

TEST(Service, ClientsThatBeginTogetherAreSpreadEvenly) {
  const auto clients = test::read_of<RequestSourceConfig>(
      "{concurrency: 64, requests: 256, input: 1024, output: 256}");
  for (const char* router : {"least_loaded", "kv_aware", "prefix_aware", "round_robin"}) {
    const auto source = clients->make();
    const Ran ran = serve(*source, {.engine = kParses, .replicas = 8, .router = router});
    EXPECT_EQ(by_instance(ran), std::vector<int>(8, 32)) << router;
  }
}

TEST(Service, ARequestThatIsParsedCountsForTheRouter) {
  // Two requests within the time that one is parsed.
  const Ran ran = serve({{0, 0, 100, 2}, {1, kMicrosecond, 100, 2}},
                        {.engine = kParses, .replicas = 2, .router = "least_loaded"});
  EXPECT_EQ(ran.of(0).instance, 0);
  EXPECT_EQ(ran.of(1).instance, 1);
}

TEST(Service, BetweenReportsTheRouterKnowsOnlyWhatItHasSent) {
  // Instance 0 runs request 0 for 1.1 s; instance 1 answers request 1 at 110 us.
  std::vector<Request> requests = {
      {0, 0, 100, 100000}, {1, 0, 100, 1}, {2, 500 * kMicrosecond, 100, 1}};
  Fleet fleet{.replicas = 2, .router = "least_loaded"};
  EXPECT_EQ(serve(requests, fleet).of(2).instance, 1);
  // Without a report it still counts request 1: both have one, and instance 0 was chosen before.
  fleet.report_interval = Seconds(1);
  EXPECT_EQ(serve(requests, fleet).of(2).instance, 0);
  // The report of 1 s tells that instance 1 is idle.
  requests[2].arrival = 1000500 * kMicrosecond;
  EXPECT_EQ(serve(requests, fleet).of(2).instance, 1);
}

TEST(Service, RandomSpreadsRequestsEvenly) {
  std::vector<Request> requests;
  for (int i = 0; i < 4000; ++i)
    requests.push_back({i, static_cast<Picoseconds>(i) * 200 * kMicrosecond, 10, 1});
  for (const int count : by_instance(serve(requests, {.replicas = 4, .router = "random"})))
    EXPECT_NEAR(count, 1000, 4 * std::sqrt(1000 * 0.75));
}

TEST(Service, DataParallelRanksWaitForTheSlowest) {
  const Ran ran = serve({{0, 0, 100, 2}, {1, 0, 20, 2}}, {.ranks = 2});
  EXPECT_EQ(ran.of(0).first_token, 110 * kMicrosecond);  // each on a rank of its own
  EXPECT_EQ(ran.of(1).first_token, 110 * kMicrosecond);
  EXPECT_EQ(ran.instances[0].iterations(), 2);
}

TEST(Service, EveryRankHearsOfTheMeanTokensOfAll) {
  std::vector<std::int64_t> means;
  const auto price = [&](const BatchShape& shape) {
    means.push_back(shape.mean_tokens);
    return linear(shape);
  };
  const std::string eager = "{kind: vllm, enforce_eager: true}";  // no padding
  serve({{0, 0, 101, 1}, {1, 0, 20, 1}}, {.engine = eager, .ranks = 2}, price);
  EXPECT_EQ(means, (std::vector<std::int64_t>{61, 61}));  // 121 / 2, rounded up
  means.clear();
  serve({{0, 0, 101, 1}}, {}, price);
  EXPECT_EQ(means, std::vector<std::int64_t>{0});
}

TEST(Service, APromptWaitsForThatOfTheOtherRank) {
  // Ranks answer from 110 us on, in iterations of 11 us. At 115 us a third prompt comes to one of
  // them; the fifth iteration without prompts on all ranks, that of 154 us, takes it.
  std::vector<Request> requests = {
      {.id = 0, .prompt = 100, .output = 60},
      {.id = 1, .prompt = 100, .output = 60},
      {.id = 2, .arrival = 115 * kMicrosecond, .prompt = 50, .output = 1}};
  const std::string balanced =
      "{kind: tensorrt_llm, disable_overlap_scheduler: true, attention_dp_config: "
      "{enable_balance: true, timeout_iters: 5}}";
  const std::string plainly = "{kind: tensorrt_llm, disable_overlap_scheduler: true}";
  const Ran plain = serve(requests, {.engine = plainly, .ranks = 2});
  EXPECT_EQ(plain.of(2).started, 121 * kMicrosecond);
  const Ran ran = serve(requests, {.engine = balanced, .ranks = 2});
  EXPECT_EQ(ran.of(2).started, 154 * kMicrosecond);
}

TEST(Service, HostTimeAddsToEachIterationOrHidesBehindTheDevices) {
  const std::string host = "{kind: vllm, host: {iteration: 4 us, sequence: 1 us, request: 7 us}";
  const Ran apart = serve({{0, 0, 100, 3}}, {.engine = host + "}"});
  EXPECT_EQ(apart.of(0).started, 7 * kMicrosecond);
  EXPECT_EQ(apart.end, (7 + 110 + 2 * 11 + 3 * 5) * kMicrosecond);
  // Before the first iteration there is nothing to hide behind.
  const Ran beside = serve({{0, 0, 100, 3}}, {.engine = host + ", async_scheduling: true}"});
  EXPECT_EQ(beside.end, (7 + 110 + 5 + 2 * 11) * kMicrosecond);
  // It is what vLLM does by itself from version 0.14 on.
  const Ran newer = serve({{0, 0, 100, 3}}, {.engine = host + ", version: \"0.19.0\"}"});
  EXPECT_EQ(newer.end, beside.end);
}

TEST(Service, AGapBetweenIterationsHidesBehindNothing) {
  const auto end = [](const std::string& more) {
    return serve({{0, 0, 100, 4}}, {.engine = "{kind: vllm, host: {gap: 1 ms}" + more + "}"}).end;
  };
  // A prompt of 110 us, three decodes of 11 us.
  EXPECT_EQ(end(""), (110 + 3 * 11 + 4 * 1000) * kMicrosecond);
  EXPECT_EQ(end(", async_scheduling: true"), end(""));
}

TEST(Service, KernelsThatAreInNoGraphAreLaunchedOneByOne) {
  // Ten kernels: a prompt of 600 tokens takes devices 610 us, a decode 11 us.
  const std::string host = "{kind: vllm, host: {launch: 100 us}";
  const Ran prompt = serve({{0, 0, 600, 3}}, {.engine = host + "}"});
  EXPECT_EQ(prompt.of(0).first_token, 1000 * kMicrosecond);
  EXPECT_EQ(prompt.end, (1000 + 2 * 11) * kMicrosecond);
  const Ran eager = serve({{0, 0, 600, 3}}, {.engine = host + ", enforce_eager: true}"});
  EXPECT_EQ(eager.end, 3 * 1000 * kMicrosecond);
  // Launches hide behind kernels that take longer, and what else the host does comes before them.
  const Ran faster =
      serve({{0, 0, 600, 3}}, {.engine = "{kind: vllm, host: {launch: 50 us, iteration: 4 us}}"});
  EXPECT_EQ(faster.of(0).first_token, (4 + 610) * kMicrosecond);
  // A small prompt of vLLM is a graph, one of SGLang is none.
  const Ran graph = serve({{0, 0, 100, 1}}, {.engine = host + "}"});
  EXPECT_EQ(graph.end, 110 * kMicrosecond);
  const Ran none = serve({{0, 0, 100, 1}}, {.engine = "{kind: sglang, host: {launch: 100 us}}"});
  EXPECT_EQ(none.end, 1000 * kMicrosecond);
}

TEST(Service, IterationsAreLongerByWhatTheyAreSlower) {
  const Ran ran = serve({{0, 0, 100, 3}}, {.slowness = {.decodes = 2, .prompts = 3}});
  EXPECT_EQ(ran.of(0).first_token, 330 * kMicrosecond);
  EXPECT_EQ(ran.end, (330 + 2 * 22) * kMicrosecond);
}

TEST(IterationMeans, AreThoseOverTime) {
  IterationMeans means;
  means.add({.sequences = 4, .longest = 100, .context = 300}, 3 * kMicrosecond);
  means.add({.sequences = 8, .longest = 200, .context = 1200}, kMicrosecond);
  std::vector<Chunk> chunks;
  const BatchShape mean = means.shape(chunks);
  EXPECT_EQ(mean.sequences, 5);
  EXPECT_EQ(mean.longest, 125);
  EXPECT_EQ(mean.context, 525);  // 105 each
  EXPECT_NEAR(means.seconds(), 4e-6, 1e-15);
  const std::vector<Chunk> two = {{100, 50, true}, {300, 150, true}};
  IterationMeans prompts;
  prompts.add({.chunks = two}, kMicrosecond);
  const BatchShape prompt = prompts.shape(chunks);
  ASSERT_EQ(prompt.chunks.size(), 2);
  EXPECT_EQ(prompt.chunks.front(), (Chunk{200, 100, true}));
  EXPECT_EQ(prompt.sequences, 0);
}

TEST(Service, PrefixesThatAreKeptAreNotComputedAgain) {
  const auto prefix = std::make_shared<PrefixHashes>(PrefixHashes{64, {1, 2, 3}});
  const std::vector<Request> requests = {{0, 0, 200, 2, prefix},
                                         {1, 1000 * kMicrosecond, 200, 2, prefix}};
  const Ran cached = serve(requests);
  EXPECT_EQ(cached.of(0).first_token, 210 * kMicrosecond);
  EXPECT_EQ(cached.of(0).found, 0);
  EXPECT_EQ(cached.of(1).found, 192);
  EXPECT_EQ(cached.of(1).first_token, (1000 + 10 + 8) * kMicrosecond);  // 200 - 3 x 64 tokens
  const Ran plain = serve(requests, {.engine = "{kind: vllm, prefix_caching: false}"});
  EXPECT_EQ(plain.of(1).first_token, 1210 * kMicrosecond);
}

/// M/D/1: requests of one token each, one at a time. Mean wait rho / (2 mu (1 - rho))
/// (Pollaczek and Khinchine).
TEST(Service, WaitsAsAQueueWithOneServerDoes) {
  constexpr double kService = 11e-6, kLoad = 0.7;
  const auto config = test::read_of<RequestSourceConfig>(
      "{rate: " + std::to_string(kLoad / kService) + " /s, requests: 200000, input: 1, output: 1}");
  const auto source = config->make();
  const Ran ran = serve(*source, {.engine = "{kind: vllm, max_num_seqs: 1}"});
  constexpr std::size_t kBatches = 20;
  std::vector<double> means(kBatches);
  for (const ServedRequest& a : ran.log.served())
    means[static_cast<std::size_t>(a.id) * kBatches / 200000] +=
        static_cast<double>(a.started - a.arrival) * 1e-12 / (200000.0 / kBatches);
  const double mean = std::accumulate(means.begin(), means.end(), 0.0) / kBatches;
  double variance = 0;
  for (const double m : means) variance += (m - mean) * (m - mean) / (kBatches - 1);
  EXPECT_NEAR(mean, kLoad * kService / 2 / (1 - kLoad), 3 * std::sqrt(variance / kBatches));
  EXPECT_LT(std::sqrt(variance / kBatches), 0.05 * mean);  // the test tells something
}

TEST(Service, SameRequestsSameTimes) {
  const auto run = [] {
    const auto config = test::read_of<RequestSourceConfig>(
        "{rate: 500 /s, requests: 300, input: {uniform: [1, 300]}, output: {uniform: [1, 60]}}");
    const auto source = config->make();
    const Ran ran = serve(*source, {.replicas = 2});
    std::vector<Picoseconds> times;
    for (const ServedRequest& a : ran.log.served()) times.push_back(a.last_token);
    return times;
  };
  EXPECT_EQ(run(), run());
}

TEST(Service, CanBeStopped) {
  const auto config =
      test::read_of<RequestSourceConfig>("{rate: 1 /s, requests: 100000, input: 1, output: 1}");
  const auto engine = test::read_of<SchedulerConfig>("{kind: vllm}");
  PricedBy pricer(linear);
  std::vector<Instance> instances;
  instances.emplace_back(*engine.object, pricer, InstanceRules{.kv = {16, 100, true}});
  const auto router = Routers::at("router", "round_robin")();
  const auto source = config->make();
  ServingLog log;
  Service service(instances, *router, *source, log);
  service.run([](Picoseconds, std::int64_t answered) { return answered < 3000; });
  EXPECT_TRUE(service.stopped());
  EXPECT_LT(log.served().size(), 10000U);
}

TEST(KvPool, DropsTheLeastRecentlyUsedPieceFirst) {
  KvPool pool({16, 8, true});
  const auto request = [](std::vector<std::uint64_t> pieces) {
    const auto tokens = static_cast<std::int64_t>(pieces.size()) * 16;
    return RequestState{
        .request = {0, 0, tokens, 2, std::make_shared<PrefixHashes>(PrefixHashes{16, pieces})}};
  };
  const auto run = [&](const RequestState& from) {
    RequestState p = from;
    pool.find_prefix(p);
    const std::int64_t found = p.cached;
    EXPECT_TRUE(pool.grow(p, p.missing()));
    p.cached += p.missing();
    pool.release(p);
    EXPECT_EQ(pool.used(), 0);
    return found;
  };
  EXPECT_EQ(run(request({1, 2, 3})), 0);
  EXPECT_EQ(run(request({4, 5, 6})), 0);
  EXPECT_EQ(run(request({1, 2, 3})), 32);  // one token at least is computed, and with it its block
  EXPECT_EQ(run(request({7, 8, 9})), 0);   // needs one more than the two that are free: 6 goes
  EXPECT_EQ(run(request({1, 2, 3})), 32);
  EXPECT_EQ(run(request({4, 5, 6})), 32);
}

TEST(KvPool, RefusesWhatHasNoRoomAndKeepsAllAsItWas) {
  KvPool pool({16, 4, false});
  RequestState p{.request = {0, 0, 64, 2}};
  EXPECT_TRUE(pool.grow(p, 64));
  p.cached = 64;
  EXPECT_FALSE(pool.grow(p, 1));
  EXPECT_EQ(pool.used(), 4);
  pool.release(p);
  EXPECT_EQ(pool.used(), 0);
  EXPECT_EQ(p.cached, 0);
}

TEST(Histogram, KnowsQuantilesToAThousandth) {
  Histogram h;
  for (Picoseconds i = 1; i <= 100000; ++i) h.add(i * 1000, 1);
  EXPECT_DOUBLE_EQ(h.mean(), 50000.5 * 1000);
  for (const double share : {0.1, 0.5, 0.99})
    EXPECT_NEAR(h.quantile(share) / (share * 1e8), 1, 1.0 / 1024);
}

TEST(Quantile, LiesBetweenNeighbours) {
  EXPECT_DOUBLE_EQ(quantile({1, 2, 4}, 0.5), 2);
  EXPECT_DOUBLE_EQ(quantile({1, 2, 4}, 0.75), 3);
  EXPECT_DOUBLE_EQ(quantile({7}, 0.99), 7);
}

}  // namespace
}  // namespace orrery::service_test
