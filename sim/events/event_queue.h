// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <vector>

#include "sim/units/time.h"

namespace orrery {

/// One thing to happen: 16 bytes of plain data; what `kind`, `argument` and `target` mean is the
/// owner's affair.
struct Event {
  Picoseconds time = 0;
  std::uint32_t target = 0;
  std::uint16_t kind = 0;
  std::uint16_t argument = 0;
};
static_assert(sizeof(Event) == 16);

/// Time of "no event left".
inline constexpr Picoseconds kNever = ~Picoseconds{0};

/// A monotone priority queue: pops by time, events of one time in the order they were pushed.
///
/// A radix heap (Ahuja, Mehlhorn, Orlin, Tarjan, "Faster algorithms for the shortest path problem",
/// JACM 1990): bucket i holds the events whose time differs from the last popped time in bit i-1 as
/// the highest. An event moves to a lower bucket at most once per bit, so the cost per event does
/// not grow with the number pending, and there is nothing to tune. Buckets are emptied front to
/// back, which keeps equal times first-in-first-out.
class EventQueue {
 public:
  bool empty() const { return size_ == 0; }
  std::size_t size() const { return size_; }

  /// Time of the earliest event, kNever when empty.
  Picoseconds top_time() const {
    return occupied_ == 0 ? kNever : earliest_[static_cast<unsigned>(std::countr_zero(occupied_))];
  }

  /// The event that will be popped after `others` others, if it is known to be due as soon as they
  /// are; null else.
  const Event* due(std::size_t others) const {
    const std::vector<Event>& due = buckets_[0];
    return head_ + others < due.size() ? &due[head_ + others] : nullptr;
  }

  /// @throws std::overflow_error for a time beyond kMaxTime, std::logic_error for one before the
  /// last pop.
  void push(const Event& event) {
    if (event.time < last_ || event.time > kMaxTime) {
      reject(event.time);
    }
    insert(event);
    ++size_;
  }

  /// Removes and returns the earliest event. The queue must not be empty.
  Event pop() {
    --size_;
    if ((occupied_ & 1U) == 0) {
      return split_lowest();
    }
    std::vector<Event>& due = buckets_[0];
    const Event event = due[head_++];
    if (head_ == due.size()) {
      due.clear();
      head_ = 0;
      occupied_ &= ~std::uint64_t{1};
    }
    return event;
  }

  /// Empties the queue and lets time start at 0 again; keeps the memory.
  void clear() {
    for (std::vector<Event>& bucket : buckets_) {
      bucket.clear();
    }
    occupied_ = 0;
    last_ = 0;
    head_ = 0;
    size_ = 0;
  }

 private:
  // Times below 2^63 differ in bits 0..62: 64 buckets, one bit each in `occupied_`.
  static constexpr std::size_t kBuckets = 64;

  void insert(const Event& event) {
    const auto bucket = static_cast<std::size_t>(std::bit_width(event.time ^ last_));
    buckets_[bucket].push_back(event);
    const std::uint64_t bit = std::uint64_t{1} << bucket;
    if ((occupied_ & bit) == 0 || event.time < earliest_[bucket]) {
      earliest_[bucket] = event.time;
    }
    occupied_ |= bit;
  }

  /// Takes the earliest event out of the lowest occupied bucket and moves the others down. Those of
  /// the same time land in bucket 0; the rest agree with last_ in one bit more than before.
  Event split_lowest() {
    const auto lowest = static_cast<unsigned>(std::countr_zero(occupied_));
    std::vector<Event>& bucket = buckets_[lowest];
    last_ = earliest_[lowest];
    occupied_ &= ~(std::uint64_t{1} << lowest);
    auto next = bucket.begin();
    for (; next->time != last_; ++next) {
      insert(*next);
    }
    const Event first = *next;
    for (++next; next != bucket.end(); ++next) {
      insert(*next);
    }
    bucket.clear();
    return first;
  }

  [[noreturn]] void reject(Picoseconds time) const {
    if (time > kMaxTime) {
      throw std::overflow_error("event beyond 2^63 ps");
    }
    throw std::logic_error("event in the past");
  }

  std::array<std::vector<Event>, kBuckets> buckets_;
  std::array<Picoseconds, kBuckets> earliest_{};
  std::uint64_t occupied_ = 0;  ///< bit i: bucket i has events
  Picoseconds last_ = 0;        ///< time of bucket 0
  std::size_t head_ = 0;        ///< next event of bucket 0
  std::size_t size_ = 0;
};

}  // namespace orrery
