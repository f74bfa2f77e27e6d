// SPDX-License-Identifier: Apache-2.0
#include "sim/serving/queue_trend.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <iostream>
#include <queue>
#include <random>

namespace orrery::queue_trend_test {
namespace {

ServedRequest request(std::int64_t id, double arrival, double started, double ended) {
  ServedRequest a;
  a.id = id;
  a.arrival = to_picoseconds(Seconds(arrival));
  a.started = to_picoseconds(Seconds(started));
  a.first_token = a.last_token = to_picoseconds(Seconds(ended));
  return a;
}

std::vector<ServedRequest> answers_of(const std::function<double(double)>& wait) {
  std::vector<ServedRequest> served;
  for (int i = 0; i < 2000; ++i) {
    const double arrival = i * 0.01;
    served.push_back(request(i, arrival, arrival + wait(arrival), arrival + wait(arrival) + 0.1));
  }
  return served;
}

TEST(QueueTrend, GrowsWhereWaitsDo) {
  // 100 requests a second that wait 0.1 s for each second that has passed: 10 more each second,
  // less those that start late: waiting after t are those since t / 1.1.
  const QueueTrend trend = queue_trend(answers_of([](double t) { return 0.1 * t; }));
  EXPECT_EQ(trend.load, LoadState::kSaturated);
  EXPECT_NEAR(trend.slope, 100 * (1 - 1 / 1.1), 0.1);
  EXPECT_EQ(trend.since, trend.from);
  const QueueTrend steady =
      queue_trend(answers_of([](double t) { return 0.05 + 0.02 * std::sin(7 * t); }));
  EXPECT_EQ(steady.load, LoadState::kStable);
  EXPECT_NEAR(steady.mean, 5, 0.2);
}

TEST(QueueTrend, TellsSinceWhenItGrows) {
  // Of 20 s those after 12.
  const QueueTrend trend =
      queue_trend(answers_of([](double t) { return 0.05 + 0.5 * std::max(0.0, t - 12); }));
  EXPECT_EQ(trend.load, LoadState::kSaturated);
  EXPECT_NEAR(to_seconds(trend.since).base(), 12, 0.9);  // to a stretch
}

TEST(QueueTrend, GrowthThatDoesNotMatterIsStable) {
  // The slope is certain, but 1 % of the arrivals: the queue of an engine that fills.
  const QueueTrend trend = queue_trend(answers_of([](double t) { return 0.02 + 0.01 * t; }));
  EXPECT_GT(trend.slope, 0.9);
  EXPECT_EQ(trend.load, LoadState::kStable);
}

TEST(QueueTrend, ArrivalsOfLessThanThreeLifetimesDecideNothing) {
  std::vector<ServedRequest> served;
  for (int i = 0; i < 100; ++i) served.push_back(request(i, 0.1 * i, 0.1 * i, 0.1 * i + 5));
  const QueueTrend trend = queue_trend(served);
  EXPECT_EQ(trend.load, LoadState::kUndecided);
  EXPECT_NEAR(trend.deciding, 100 * 15 / 9.9, 1);  // three lifetimes of 5 s at 10 a second
}

/// A queue of `servers` with Poisson arrivals over 20 relaxation times, 1 / (k (1 - sqrt(rho))^2).
struct Queue {
  int servers = 1;
  double load = 0.5;
  bool deterministic = false;  ///< M/D/k; otherwise M/M/k. The mean service time is 1 s.

  std::vector<ServedRequest> run(std::uint64_t seed) const {
    std::mt19937_64 engine(seed);
    const auto exponential = [&engine] {
      return -std::log((static_cast<double>(engine() >> 11) + 0.5) * 0x1p-53);
    };
    const double apart = 1 - std::sqrt(load);
    const double horizon = 20 / (servers * apart * apart);
    std::priority_queue<double, std::vector<double>, std::greater<>> free;
    for (int i = 0; i < servers; ++i) free.push(0);
    std::vector<ServedRequest> served;
    for (double now = 0;;) {
      now += exponential() / (load * servers);
      if (now > horizon) return served;
      const double started = std::max(now, free.top());
      free.pop();
      const double ended = started + (deterministic ? 1 : exponential());
      free.push(ended);
      served.push_back(request(static_cast<std::int64_t>(served.size()), now, started, ended));
    }
  }
};

/// Utilisations of 0.1 to 0.95 and of 1.05 to 3, near 1 as often as far from it.
Queue draw_queue(std::mt19937_64& engine) {
  const auto share = [&engine] { return (static_cast<double>(engine() >> 11) + 0.5) * 0x1p-53; };
  Queue queue;
  queue.servers = 1 << static_cast<int>(5 * share());
  queue.deterministic = share() < 0.5;
  queue.load = share() < 0.5 ? 1 - 0.05 * std::pow(18, share()) : 1 + 0.05 * std::pow(40, share());
  return queue;
}

TEST(QueueTrend, OfDecidedLoadsOfMMkAndMDkAtMostOneInAHundredIsWrong) {
  constexpr int kSeeds = 1000;
  std::mt19937_64 engine(1);
  int decided = 0, wrong = 0, short_ones = 0;
  for (int seed = 0; seed < kSeeds; ++seed) {
    const Queue queue = draw_queue(engine);
    const std::vector<ServedRequest> served = queue.run(static_cast<std::uint64_t>(seed));
    if (served.size() < 2) continue;
    const QueueTrend trend = queue_trend(served);
    const double span = to_seconds(served.back().arrival - served.front().arrival).base();
    if (trend.load == LoadState::kUndecided) {
      if (span < kLifetimes * mean_lifetime(served).base()) ++short_ones;
      continue;
    }
    ++decided;
    wrong += (trend.load == LoadState::kSaturated) == (queue.load > 1) ? 0 : 1;
  }
  std::cout << decided << " of " << kSeeds << " decided, " << wrong << " wrong; " << short_ones
            << " undecided because the horizon is shorter than three service times\n";
  EXPECT_LE(wrong * 100, decided);
  EXPECT_GE(decided + short_ones, 95 * kSeeds / 100);
}

}  // namespace
}  // namespace orrery::queue_trend_test
