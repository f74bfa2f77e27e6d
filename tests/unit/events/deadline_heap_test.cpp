// SPDX-License-Identifier: Apache-2.0
#include "sim/events/deadline_heap.h"

#include <gtest/gtest.h>

#include <random>
#include <set>
#include <utility>
#include <vector>

namespace orrery::deadline_heap_test {
namespace {

TEST(DeadlineHeap, EqualDeadlinesComeInOrderOfIds) {
  DeadlineHeap<> heap(4);
  for (const std::uint32_t id : {2U, 0U, 3U, 1U}) {
    heap.set(id, 10);
  }
  for (std::uint32_t id = 0; id < 4; ++id) {
    EXPECT_EQ(heap.top(), id);
    heap.erase(heap.top());
  }
  EXPECT_TRUE(heap.empty());
}

TEST(DeadlineHeap, KeepsOneEntryPerIdWhateverIsUpdated) {
  DeadlineHeap<> heap(3);
  heap.set(0, 5);
  heap.set(1, 6);
  for (Picoseconds t = 0; t < 1000; ++t) {
    heap.set(0, 1000 - t);
  }
  EXPECT_EQ(heap.size(), 2U);
  EXPECT_EQ(heap.top(), 0U);
  EXPECT_EQ(heap.top_key(), 1U);
  EXPECT_FALSE(heap.contains(2));
}

TEST(DeadlineHeap, EqualsASortedSetForRandomUpdates) {
  constexpr std::uint32_t kIds = 200;
  std::mt19937_64 random(3);
  DeadlineHeap<> heap(kIds);
  std::set<std::pair<Picoseconds, std::uint32_t>> reference;
  std::vector<Picoseconds> keys(kIds);
  for (int step = 0; step < 50000; ++step) {
    const auto id = static_cast<std::uint32_t>(random() % kIds);
    if (heap.contains(id)) {
      reference.erase({keys[id], id});
    }
    if (heap.contains(id) && random() % 3 == 0) {
      heap.erase(id);
    } else {
      keys[id] = random() % 500;
      heap.set(id, keys[id]);
      reference.insert({keys[id], id});
    }
    ASSERT_EQ(heap.size(), reference.size());
    if (!reference.empty()) {
      ASSERT_EQ(std::pair(heap.top_key(), heap.top()), *reference.begin());
    }
  }
  heap.clear();
  EXPECT_TRUE(heap.empty());
  EXPECT_FALSE(heap.contains(0));
}

TEST(DeadlineHeap, SettingManyAtOnceEqualsSettingThemOneByOne) {
  std::mt19937_64 random(3);
  constexpr std::uint32_t kIds = 200;
  DeadlineHeap<> one_by_one(kIds);
  DeadlineHeap<> at_once;
  at_once.extend(kIds);
  for (int round = 0; round < 200; ++round) {
    // From a few, which are moved, to all, for which the heap is built anew.
    std::vector<DeadlineHeap<>::Entry> entries;
    const std::uint64_t part = 1 + random() % 20;
    for (std::uint32_t id = 0; id < kIds; ++id) {
      if (random() % part == 0) {
        entries.push_back({1 + random() % 100, id});
        one_by_one.set(id, entries.back().key);
      }
    }
    at_once.set_all(entries);
    for (int popped = 0; popped < 5 && !one_by_one.empty(); ++popped) {
      ASSERT_EQ(at_once.top(), one_by_one.top());
      ASSERT_EQ(at_once.top_key(), one_by_one.top_key());
      at_once.erase(at_once.top());
      one_by_one.erase(one_by_one.top());
    }
    ASSERT_EQ(at_once.size(), one_by_one.size());
  }
}

}  // namespace
}  // namespace orrery::deadline_heap_test
