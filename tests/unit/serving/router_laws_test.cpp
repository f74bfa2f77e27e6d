// SPDX-License-Identifier: Apache-2.0
// Routers against each other over random fleets: pairs of runs with the same requests, and the 95 %
// interval of their difference over ten seeds.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "sim/units/hash.h"
#include "tests/unit/serving/fixture.h"

namespace orrery::router_laws_test {
namespace {

constexpr int kSeeds = 10;
constexpr double kStudent = 2.262;  // Student's t, 9 degrees of freedom, 95 %, two-sided

/// A fleet of like replicas, and the requests that come to it.
struct Fleet {
  int replicas = 2;
  double step_ms = 10;     ///< time of an iteration without tokens
  double token_us = 50;    ///< time of each new token
  double parse_ms = 20;    ///< time of a request before it waits
  double rate = 1;         ///< requests per s
  double utilisation = 0;  ///< share of a replica that prefills take
  std::int64_t requests = 300, blocks = 100000;
  std::string lengths;
};

double uniform(std::uint64_t& state, double low, double high) {
  return low + (high - low) * next_uniform(state);
}

Fleet draw_fleet(std::uint64_t seed, double least_load, double most_load) {
  std::uint64_t state = seed * 0x9e3779b97f4a7c15;
  Fleet fleet;
  fleet.replicas = 2 + static_cast<int>(uniform(state, 0, 15));
  fleet.step_ms = uniform(state, 2, 20);
  fleet.token_us = uniform(state, 20, 200);
  fleet.parse_ms = uniform(state, 0, 40);
  fleet.utilisation = uniform(state, least_load, most_load);
  const int input = static_cast<int>(uniform(state, 100, 2000));
  const int output = static_cast<int>(uniform(state, 1, 40));
  const bool varied = next_uniform(state) < 0.5;
  fleet.lengths = varied
                      ? "input: {uniform: [" + std::to_string(input / 4) + ", " +
                            std::to_string(input * 7 / 4) + "]}, output: " + std::to_string(output)
                      : "input: " + std::to_string(input) + ", output: " + std::to_string(output);
  // A replica with eight requests that decode in an iteration: prefill, and its share of decodes.
  const double alone_s =
      input * fleet.token_us * 1e-6 + output * (fleet.step_ms * 1e-3 / 8 + fleet.token_us * 1e-6);
  fleet.rate = fleet.utilisation * fleet.replicas / alone_s;
  return fleet;
}

/// Times to the first token in s, and prompt tokens that were in the cache.
struct Ttft {
  double mean = 0, p99 = 0;
  std::int64_t found = 0;
};

Ttft serve(const Fleet& fleet, const std::string& router, int seed) {
  const auto engine =
      test::engine_of("{kind: vllm, host: {request: " + std::to_string(fleet.parse_ms) + " ms}}");
  test::PricedBy pricer([&fleet](const BatchShape& shape) {
    return to_picoseconds(Seconds(fleet.step_ms * 1e-3 +
                                  static_cast<double>(shape.tokens()) * fleet.token_us * 1e-6));
  });
  std::vector<Instance> instances;
  for (int i = 0; i < fleet.replicas; ++i)
    instances.emplace_back(*engine.object, pricer, InstanceRules{.kv = {16, fleet.blocks, true}});
  const auto source = test::read_of<RequestSourceConfig>(
      "{rate: " + std::to_string(fleet.rate) + " /s, requests: " + std::to_string(fleet.requests) +
      ", " + fleet.lengths + ", seed: " + std::to_string(seed) + "}");
  const auto requests = source->make();
  const auto chosen = Routers::at("router", router)();
  ServingLog log;
  Service(instances, *chosen, *requests, log).run();
  std::vector<double> times;
  Ttft ttft;
  for (const ServedRequest& a : log.served()) {
    times.push_back(to_seconds(a.first_token - a.arrival).base());
    ttft.found += a.found;
    ttft.mean += times.back() / static_cast<double>(log.served().size());
  }
  std::sort(times.begin(), times.end());
  ttft.p99 = quantile(times, 0.99);
  return ttft;
}

/// Lower end of the 95 % interval of the mean of differences.
double lower_end(const std::array<double, kSeeds>& differences) {
  double mean = 0, squares = 0;
  for (const double d : differences) mean += d / kSeeds;
  for (const double d : differences) squares += (d - mean) * (d - mean);
  return mean - kStudent * std::sqrt(squares / (kSeeds - 1) / kSeeds);
}

/// Pairs of routers that were compared, and how many broke the law.
struct Verdict {
  int pairs = 0, broken = 0;
  std::string which;  ///< fleets that broke it

  /// A router's mean and p99 TTFT against those of another.
  void compare(const Fleet& fleet, const std::string& router, const std::string& other) {
    std::array<double, kSeeds> means{}, tails{};
    for (int seed = 0; seed < kSeeds; ++seed) {
      const auto i = static_cast<std::size_t>(seed);
      const Ttft own = serve(fleet, router, seed), its = serve(fleet, other, seed);
      means[i] = own.mean - its.mean;
      tails[i] = own.p99 - its.p99;
    }
    for (const auto* differences : {&means, &tails}) {
      ++pairs;
      if (lower_end(*differences) <= 0) continue;
      ++broken;
      which += "\n" + std::to_string(fleet.replicas) + " replicas, load " +
               std::to_string(fleet.utilisation) + ": " + (differences == &means ? "mean" : "p99") +
               " above by " + std::to_string(lower_end(*differences)) + " s at least";
    }
  }
  /// A 95 % interval lies above zero by chance in 2.5 % of pairs that are alike: more than expected
  /// with a probability of 1 % breaks the law.
  bool more_than_by_chance() const {
    constexpr double kByChance = 0.025;
    double none_more = 0, term = std::pow(1 - kByChance, pairs);
    for (int k = 0; k < broken; ++k) {
      none_more += term;
      term *= kByChance / (1 - kByChance) * (pairs - k) / (k + 1);
    }
    return 1 - none_more < 0.01;
  }
};

class RouterLaws : public testing::TestWithParam<const char*> {};

TEST_P(RouterLaws, IsNotAboveRoundRobinAtLowLoads) {
  Verdict verdict;
  for (std::uint64_t seed = 1; seed <= 25; ++seed)
    verdict.compare(draw_fleet(seed, 0.02, 0.5), GetParam(), "round_robin");
  EXPECT_FALSE(verdict.more_than_by_chance())
      << verdict.broken << " of " << verdict.pairs << verdict.which;
}

TEST_P(RouterLaws, IsNotAboveRandomAtAnyLoad) {
  Verdict verdict;
  for (std::uint64_t seed = 101; seed <= 125; ++seed)
    verdict.compare(draw_fleet(seed, 0.02, 1.3), GetParam(), "random");
  EXPECT_FALSE(verdict.more_than_by_chance())
      << verdict.broken << " of " << verdict.pairs << verdict.which;
}

/// Prompts that share prefixes, of which a replica keeps a part: whoever knows of them sends
/// requests to where they are.
TEST(SharedPrefixes, RoutersThatKnowOfThemComputeLessAndAnswerSooner) {
  for (std::uint64_t seed = 1; seed <= 5; ++seed) {
    Fleet fleet = draw_fleet(seed, 0.4, 0.7);
    fleet.replicas = std::max(fleet.replicas, 3);
    fleet.requests = 600;
    // A prefix of 125 blocks; a replica has room for a third of them and for requests that run.
    const int groups = 8 * fleet.replicas;
    fleet.lengths = "input: 200, output: 20, shared_prefixes: {groups: " + std::to_string(groups) +
                    ", tokens: 2000}";
    fleet.blocks = 125 * groups / 3 + 600;
    fleet.rate = 0.5 * fleet.replicas / (2200 * fleet.token_us * 1e-6 + 20 * fleet.step_ms / 8e3);
    for (const char* router : {"kv_aware", "prefix_aware"}) {
      int sooner = 0;
      for (int run = 0; run < kSeeds; ++run) {
        const Ttft own = serve(fleet, router, run), blind = serve(fleet, "least_loaded", run);
        EXPECT_GT(own.found, blind.found) << router;
        sooner += own.mean < blind.mean ? 1 : 0;
      }
      EXPECT_EQ(sooner, kSeeds) << router << ", fleet " << seed;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Routers, RouterLaws,
                         testing::Values("least_loaded", "kv_aware", "prefix_aware"),
                         [](const auto& router) { return std::string(router.param); });

}  // namespace
}  // namespace orrery::router_laws_test
