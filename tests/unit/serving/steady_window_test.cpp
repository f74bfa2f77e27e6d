// SPDX-License-Identifier: Apache-2.0
#include "sim/serving/steady_window.h"

#include <gtest/gtest.h>

#include "tests/unit/serving/fixture.h"

namespace orrery::steady_window_test {
namespace {

constexpr Picoseconds kMs = 1'000'000'000;

/// The window of a run of one instance, whose iterations take 1 ms and 1 J.
struct Windowed {
  explicit Windowed(RequestSource& source) {
    const auto engine = test::engine_of("{kind: vllm}");
    test::PricedBy pricer([](const BatchShape&) { return kMs; }, 1);
    instances.emplace_back(*engine.object, pricer, InstanceRules{.kv = {16, 100000, true}});
    const auto router = Routers::at("router", "round_robin")();
    Service service(instances, *router, source, log);
    service.observe(window);
    service.run();
  }
  std::vector<Instance> instances;
  ServingLog log;
  SteadyWindow window{instances, log};
};

TEST(SteadyWindow, GoesFromTheFirstLifetimeToTheLastArrival) {
  // Ten tokens take 10 ms; a request every 5 ms, the last at 100 ms.
  std::vector<Request> requests;
  for (int i = 0; i <= 20; ++i)
    requests.push_back({i, static_cast<Picoseconds>(i) * 5 * kMs, 100, 10});
  test::Given source(requests);
  const Windowed run(source);
  ASSERT_FALSE(run.window.empty());
  EXPECT_TRUE(run.window.open());
  EXPECT_EQ(run.window.from(), 10 * kMs);
  EXPECT_EQ(run.window.until(), 100 * kMs);
  EXPECT_NEAR(run.window.energies()[0], 90, 1);  // an iteration a ms
  EXPECT_EQ(run.log.gaps().count(), 21 * 9);
  EXPECT_NEAR(static_cast<double>(run.log.steady_gaps().count()), 2 * 90 - 90 / 5, 3);
}

TEST(SteadyWindow, OfRequestsThatComeTogetherIsEmpty) {
  test::Given source({{0, 0, 100, 10}, {1, 0, 100, 10}});
  const Windowed run(source);
  EXPECT_TRUE(run.window.empty());
  EXPECT_FALSE(run.window.open());
}

TEST(SteadyWindow, OfClientsGoesToTheLastRequestThatOneSends) {
  const auto clients =
      test::read_of<RequestSourceConfig>("{concurrency: 2, requests: 10, input: 100, output: 10}");
  const auto source = clients->make();
  const Windowed run(*source);
  EXPECT_FALSE(run.window.open());
  EXPECT_EQ(run.window.from(), 10 * kMs);
  EXPECT_EQ(run.window.until(), 40 * kMs);  // five rounds of 10 ms; the last begins at 40 ms
}

TEST(SteadyWindow, BeginsAfterTheMeanLifetimeWhereTheFirstRequestIsShorter) {
  std::vector<Request> requests;
  for (int i = 0; i <= 20; ++i)
    requests.push_back({i, static_cast<Picoseconds>(i) * 5 * kMs, 100, i == 0 ? 10 : 31});
  test::Given source(requests);
  const Windowed run(source);
  EXPECT_EQ(run.window.from(), 30 * kMs);  // (10 + 20 x 31) / 21
}

TEST(SteadyWindow, EnergyOfManyArrivalsIsExactToAThousandth) {
  std::vector<Request> requests;
  for (int i = 0; i < 10000; ++i)
    requests.push_back({i, static_cast<Picoseconds>(i) * kMs / 2, 10, 20});
  test::Given source(requests);
  const Windowed run(source);
  EXPECT_NEAR(run.window.energies()[0], run.window.length().base() * 1e3, 6);  // 1 J a ms of 5 s
}

}  // namespace
}  // namespace orrery::steady_window_test
