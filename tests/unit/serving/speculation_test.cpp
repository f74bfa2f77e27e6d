// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "sim/serving/speculation.h"
#include "tests/unit/serving/fixture.h"

namespace orrery::speculation_test {
namespace {

using test::Given;
using test::PricedBy;
using ::testing::DoubleNear;
using ::testing::ElementsAre;

struct Served {
  ServingLog log;
  std::vector<Instance> instances;
};

Served serve(const Speculation& speculation, std::vector<Request> requests,
             std::int64_t blocks = 10000) {
  const auto engine = test::engine_of("{kind: vllm, max_num_batched_tokens: 512}");
  PricedBy pricer([](const BatchShape&) { return Picoseconds{1'000'000}; });
  Served served;
  served.instances.emplace_back(*engine.object, pricer,
                                InstanceRules{.kv = {16, blocks, false, speculation.draft_tokens()},
                                              .speculation = speculation});
  const auto router = Routers::at("router", "round_robin")();
  Given source(std::move(requests));
  Service(served.instances, *router, source, served.log).run();
  return served;
}

TEST(Speculation, OfAMeanHasOneRate) {
  // 1 + r + r^2 = 1.75 for r = 1/2.
  EXPECT_THAT(Speculation::of_mean(2, 1.75).right,
              ElementsAre(DoubleNear(0.5, 1e-9), DoubleNear(0.25, 1e-9)));
  EXPECT_THAT(Speculation::of_mean(2, 1).right,
              ElementsAre(DoubleNear(0, 1e-9), DoubleNear(0, 1e-9)));
  EXPECT_NEAR(Speculation::of_mean(3, 4).mean_tokens(), 4, 1e-9);
}

TEST(Speculation, OfMeansIsWhatEachGuessAdds) {
  const Speculation s = Speculation::of_means({1.8, 2.3, 2.25, 2.35});
  EXPECT_THAT(s.right,
              ElementsAre(DoubleNear(0.8, 1e-9), DoubleNear(0.5, 1e-9), 0, DoubleNear(0, 1e-9)));
}

TEST(Speculation, RightGuessesTakeNoIteration) {
  // The prompt's iteration gives one token; each of the others three, the last what is left of 9.
  const Served all = serve({{1, 1}}, {{.id = 0, .prompt = 20, .output = 9}});
  EXPECT_EQ(all.instances[0].iterations(), 1 + 3);
  const Served none = serve({{0, 0}}, {{.id = 0, .prompt = 20, .output = 9}});
  EXPECT_EQ(none.instances[0].iterations(), 1 + 8);
}

TEST(Speculation, IterationsGiveTheMeanOfTokens) {
  const Speculation speculation{{0.7, 0.4}};
  std::vector<Request> requests;
  constexpr int kRequests = 50, kTokens = 1000;
  for (int i = 0; i < kRequests; ++i)
    requests.push_back({.id = i,
                        .arrival = static_cast<Picoseconds>(i) * 2'000'000'000,
                        .prompt = 8,
                        .output = kTokens});
  const Served served = serve(speculation, requests);
  const double decodes = static_cast<double>(served.instances[0].iterations() - kRequests);
  // One at a time: 50,000 tokens of 2.1 a draw, whose deviation is 0.83.
  EXPECT_NEAR(kRequests * (kTokens - 1) / decodes, 2.1, 3 * 0.83 / std::sqrt(decodes) + 0.001);
}

TEST(Speculation, GuessesTakeTokensOfTheBudgetAndRoom) {
  const auto engine = test::read_of<SchedulerConfig>("{kind: vllm, max_num_batched_tokens: 8}");
  const auto scheduler = engine->make();
  KvPool pool({4, 100, false, 3});
  Queue queue;
  for (int i = 0; i < 3; ++i) {
    RequestState state{.request = {.id = i, .prompt = 4, .output = 9}};
    state.cached = 4;
    state.produced = 1;
    state.blocks = 1;
    queue.running.push_back(state);
  }
  Batch batch;
  scheduler->admit(queue, pool, batch);
  // Two of four tokens each; blocks for 4 + 1 + 3 tokens.
  EXPECT_EQ(batch.shares.size(), 2U);
  EXPECT_EQ(queue.running[0].blocks, 2);
  EXPECT_EQ(batch.shape(queue, 3).tokens(), 8);
}

TEST(Speculation, SameDrawsWhateverRunsBeside) {
  const Speculation speculation{{0.5}};
  RequestState alone{.request = {.id = 3, .prompt = 4, .output = 99}};
  alone.produced = 5;
  RequestState again = alone;
  speculation.accept(alone);
  speculation.accept(again);
  EXPECT_EQ(alone.produced, again.produced);
}

}  // namespace
}  // namespace orrery::speculation_test
