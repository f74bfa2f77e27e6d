// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "sim/serving/adapter_slots.h"
#include "tests/unit/serving/fixture.h"

namespace orrery::adapters_test {
namespace {

using test::Engine;
using test::Given;
using test::PricedBy;
using ::testing::ElementsAre;

AdapterSet set_of(std::initializer_list<std::int32_t> adapters) {
  AdapterSet set;
  for (const std::int32_t adapter : adapters) set.add(adapter);
  return set;
}

Request asking(std::int64_t id, std::int32_t adapter, std::int64_t prompt = 10,
               std::int64_t output = 3) {
  return {.id = id, .prompt = prompt, .output = output, .adapter = adapter};
}

TEST(Adapters, AreCountedOnce) {
  const AdapterSet set = set_of({3, 1, 3, -1, 2});
  EXPECT_EQ(set.size(), 3);
  EXPECT_THAT(std::vector<std::int32_t>(set.begin(), set.end()), ElementsAre(1, 2, 3));
}

TEST(AdapterSlots, TheLeastRecentlyUsedMakesPlace) {
  AdapterSlots slots({2, Seconds(0.25)});
  EXPECT_EQ(slots.use(set_of({1, 2})), Seconds(0.5));
  EXPECT_EQ(slots.use(set_of({1})), Seconds(0));
  EXPECT_EQ(slots.use(set_of({3})), Seconds(0.25));  // in the place of 2
  EXPECT_EQ(slots.use(set_of({1, 3})), Seconds(0));
  EXPECT_EQ(slots.use(set_of({2, 3})), Seconds(0.25));  // in the place of 1: 3 is needed
  EXPECT_EQ(slots.use(set_of({3})), Seconds(0));
  EXPECT_EQ(slots.loads(), 4);
}

TEST(VllmAdapters, OneTooManyIsPassedOverByThoseBehindIt) {
  Engine engine("{kind: vllm}", 100,
                {asking(0, 7), asking(1, 8), asking(2, 9), asking(3, 7), asking(4, -1)});
  engine.queue.max_loras = 2;
  EXPECT_EQ(engine.step(), "P0:10 P1:10 P3:10 P4:10");
  EXPECT_EQ(engine.queue.waiting.front().request.id, 2);
  EXPECT_EQ(engine.step(), "D0 D1 D3 D4");
  EXPECT_EQ(engine.step(), "D0 D1 D3 D4");
  EXPECT_EQ(engine.step(), "P2:10");  // slots are free
}

TEST(VllmAdapters, WhoWasPassedOverStaysInFront) {
  Engine engine("{kind: vllm, max_num_seqs: 2}", 100,
                {asking(0, 1), asking(1, 2), asking(2, 3), asking(3, 4)});
  engine.queue.max_loras = 1;
  EXPECT_EQ(engine.step(), "P0:10");
  std::vector<std::int64_t> order;
  for (const RequestState& state : engine.queue.waiting) order.push_back(state.request.id);
  EXPECT_THAT(order, ElementsAre(1, 2, 3));
}

TEST(VllmAdapters, ABatchTellsHowManyItHas) {
  Engine engine("{kind: vllm}", 100, {});
  Queue queue;
  for (std::int64_t i = 0; i < 4; ++i)
    queue.running.push_back({.request = asking(i, static_cast<std::int32_t>(i % 2))});
  Batch batch;
  for (std::size_t i = 0; i < 4; ++i) batch.shares.push_back({i, 10});
  EXPECT_EQ(batch.shape(queue).adapters, 2);
}

TEST(KvPoolAdapters, ShareNoPiecesOfEqualPrompts) {
  const auto prefix = std::make_shared<PrefixHashes>(PrefixHashes{4, {11, 12, 13}});
  KvPool pool({4, 100, true});
  const auto found = [&](std::int32_t adapter) {
    RequestState state{.request = asking(0, adapter, 13)};
    state.request.prefix = prefix;
    EXPECT_EQ(pool.kept(state.request), [&] {
      RequestState look = state;
      pool.find_prefix(look);
      const std::int64_t cached = look.cached;
      pool.put_back(look);
      return cached;
    }());
    pool.find_prefix(state);
    const std::int64_t cached = state.cached;
    EXPECT_TRUE(pool.grow(state, state.missing()));
    state.cached = state.request.prompt;
    pool.release(state);
    return cached;
  };
  EXPECT_EQ(found(-1), 0);
  EXPECT_EQ(found(0), 0);
  EXPECT_EQ(found(1), 0);
  EXPECT_EQ(found(0), 12);
  EXPECT_EQ(found(1), 12);
  EXPECT_EQ(found(-1), 12);
}

TEST(AdapterDraws, LeaveArrivalsAndLengthsAsTheyAre) {
  const std::string keys = "rate: 5 /s, requests: 200, input: {uniform: [10, 99]}, seed: 3";
  const auto plain = test::requests_of("{" + keys + "}");
  const auto config = test::read_of<RequestSourceConfig>("{" + keys + ", adapters: 4}");
  const auto adapted = test::all_of(*make_source(*config.object));
  ASSERT_EQ(plain.size(), adapted.size());
  for (std::size_t i = 0; i < plain.size(); ++i) {
    Request same = adapted[i];
    EXPECT_GE(same.adapter, 0);
    EXPECT_LT(same.adapter, 4);
    same.adapter = -1;
    EXPECT_EQ(same, plain[i]);
  }
}

/// How often each adapter is drawn, of so many draws.
std::vector<double> shares_of(const std::string& adapters, int draws) {
  const auto config = test::read_of<RequestSourceConfig>(
      "{rate: 1 /s, requests: " + std::to_string(draws) + ", adapters: " + adapters + "}");
  std::vector<double> shares(4);
  for (const Request& request : test::all_of(*make_source(*config.object)))
    shares[static_cast<std::size_t>(request.adapter)] += 1.0 / draws;
  return shares;
}

TEST(AdapterDraws, FollowTheirPopularity) {
  constexpr int kDraws = 20000;
  const double deviation = std::sqrt(0.25 / kDraws);  // of a share, at most
  for (const double share : shares_of("4", kDraws)) EXPECT_NEAR(share, 0.25, 4 * deviation);
  const std::vector<double> zipf = shares_of("{count: 4, popularity: zipf}", kDraws);
  const double sum = 1 + 1.0 / 2 + 1.0 / 3 + 1.0 / 4;
  for (std::size_t k = 0; k < 4; ++k)
    EXPECT_NEAR(zipf[k], 1 / (static_cast<double>(k) + 1) / sum, 4 * deviation);
}

TEST(AdapterDraws, AConversationKeepsItsAdapter) {
  const auto config = test::read_of<RequestSourceConfig>(
      "{arrival: sessions, rate: 1 /s, sessions: 20, turns: 3, adapters: 100}");
  const auto source = make_source(*config.object);
  std::int64_t turns = 0;
  while (const auto first = source->next()) {
    for (auto turn = source->after(*first, first->arrival); turn;
         turn = source->after(*turn, turn->arrival), ++turns)
      EXPECT_EQ(turn->adapter, first->adapter);
  }
  EXPECT_EQ(turns, 40);
}

/// Requests one after the other through one slot; iterations of 1 ms, adapters of 2 ms.
Picoseconds served_until(const std::vector<std::int32_t>& adapters) {
  const auto engine = test::engine_of("{kind: vllm}");
  PricedBy pricer([](const BatchShape&) { return Picoseconds{1'000'000'000}; });
  std::vector<Instance> instances;
  InstanceRules rules{.kv = {16, 1000, false}};
  rules.adapters = {1, Seconds(2e-3)};
  instances.emplace_back(*engine.object, pricer, rules);
  std::vector<Request> requests;
  for (std::size_t i = 0; i < adapters.size(); ++i)
    requests.push_back(asking(static_cast<std::int64_t>(i), adapters[i], 10, 1));
  const auto router = Routers::at("router", "round_robin")();
  Given source(requests);
  ServingLog log;
  Service service(instances, *router, source, log);
  service.run();
  return service.now();
}

TEST(AdapterSlots, AnIterationWaitsForWhatItBrings) {
  constexpr Picoseconds kMs = 1'000'000'000;
  EXPECT_EQ(served_until({-1, -1}), 1 * kMs);  // both at once
  EXPECT_EQ(served_until({5, 5}), 3 * kMs);
  EXPECT_EQ(served_until({5, 6}), 6 * kMs);      // one after the other
  EXPECT_EQ(served_until({5, 6, 5}), 6 * kMs);   // the third joins the first
  EXPECT_EQ(served_until({5, -1, 6}), 6 * kMs);  // who has none joins anybody
}

}  // namespace
}  // namespace orrery::adapters_test
