// SPDX-License-Identifier: Apache-2.0
#include "sim/events/event_queue.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <stdexcept>
#include <tuple>
#include <vector>

namespace orrery::event_queue_test {
namespace {

TEST(EventQueue, IsEmptyAtFirstAndSaysSo) {
  const EventQueue queue;
  EXPECT_TRUE(queue.empty());
  EXPECT_EQ(queue.top_time(), kNever);
}

TEST(EventQueue, PopsByTimeAndEqualTimesInOrderOfPush) {
  EventQueue queue;
  const std::vector<Picoseconds> times = {5, 3, 5, 0, 3};
  for (std::uint32_t i = 0; i < times.size(); ++i) {
    queue.push({times[i], i, 0, 0});
  }
  std::vector<std::uint32_t> targets;
  while (!queue.empty()) {
    targets.push_back(queue.pop().target);
  }
  EXPECT_EQ(targets, (std::vector<std::uint32_t>{3, 1, 4, 0, 2}));
}

/// Random pushes and pops against a list sorted by (time, sequence); `spread` sets how many times
/// are equal.
void compare_with_reference(std::uint64_t spread, std::uint32_t seed) {
  std::mt19937_64 random(seed);
  EventQueue queue;
  std::vector<std::tuple<Picoseconds, std::uint32_t>> pending;  // reference, sorted
  Picoseconds now = 0;
  std::uint32_t sequence = 0;
  for (int step = 0; step < 20000; ++step) {
    if (pending.empty() || random() % 100 < 52) {
      const Picoseconds time = now + random() % spread;
      queue.push({time, sequence, 0, 0});
      const std::tuple entry(time, sequence++);
      pending.insert(std::upper_bound(pending.begin(), pending.end(), entry), entry);
    } else {
      ASSERT_EQ(queue.top_time(), std::get<0>(pending.front()));
      const Event event = queue.pop();
      ASSERT_EQ(std::tuple(event.time, event.target), pending.front());
      now = event.time;
      pending.erase(pending.begin());
    }
    ASSERT_EQ(queue.size(), pending.size());
  }
}

TEST(EventQueue, EqualsASortedListForRandomPushes) {
  for (const std::uint64_t spread : {1ULL, 3ULL, 1000ULL, 5'000'000ULL, 1ULL << 45}) {
    compare_with_reference(spread, 7);
  }
}

TEST(EventQueue, TakesTimesUpToTheLimitAndRejectsLaterOnes) {
  EventQueue queue;
  queue.push({kMaxTime, 1, 0, 0});
  EXPECT_THROW(queue.push({kMaxTime + 1, 2, 0, 0}), std::overflow_error);
  EXPECT_THROW(queue.push({kNever, 2, 0, 0}), std::overflow_error);
  EXPECT_EQ(queue.pop().time, kMaxTime);
}

TEST(EventQueue, RejectsThePast) {
  EventQueue queue;
  queue.push({100, 0, 0, 0});
  queue.pop();
  queue.push({100, 0, 0, 0});
  EXPECT_THROW(queue.push({99, 0, 0, 0}), std::logic_error);
}

TEST(EventQueue, StartsAtZeroAgainAfterClear) {
  EventQueue queue;
  queue.push({100, 0, 0, 0});
  queue.pop();
  queue.push({200, 0, 0, 0});
  queue.clear();
  EXPECT_TRUE(queue.empty());
  queue.push({1, 9, 0, 0});
  EXPECT_EQ(queue.top_time(), 1U);
  EXPECT_EQ(queue.pop().target, 9U);
}

}  // namespace
}  // namespace orrery::event_queue_test
