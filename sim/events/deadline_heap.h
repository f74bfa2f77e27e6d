// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "sim/units/time.h"

namespace orrery {

/// Deadlines by id, the earliest first, that can be moved and cancelled: an indexed 4-ary heap.
/// Equal deadlines come in the order of their ids, so the result does not depend on the history of
/// updates.
///
/// SystemC's own way, sc_event::cancel and notify, leaves a dead entry in the kernel's queue at
/// every change; here an id has one entry whatever happens to it.
template <class Key = Picoseconds>
class DeadlineHeap {
 public:
  /// Ids are 0 .. ids-1; the heap starts empty.
  explicit DeadlineHeap(std::size_t ids = 0) : place_(ids, kAbsent) {}

  struct Entry {
    Key key;
    std::uint32_t id;
    bool operator<(const Entry& o) const { return key < o.key || (key == o.key && id < o.id); }
  };

  /// Ids are 0 .. ids-1 from now on; at least as many as before.
  void extend(std::size_t ids) { place_.resize(ids, kAbsent); }

  bool empty() const { return entries_.empty(); }
  std::size_t size() const { return entries_.size(); }
  bool contains(std::uint32_t id) const { return place_[id] != kAbsent; }

  /// The earliest deadline and its id. The heap must not be empty.
  Key top_key() const { return entries_.front().key; }
  std::uint32_t top() const { return entries_.front().id; }

  /// Sets the deadline of `id`, whether it has one already or not.
  void set(std::uint32_t id, Key key) {
    const Entry entry{key, id};
    std::uint32_t at = place_[id];
    if (at == kAbsent) {
      at = static_cast<std::uint32_t>(entries_.size());
      entries_.push_back(entry);
    }
    settle(at, entry);
  }

  /// Sets many deadlines, each id once. If they are a good part of all, the heap is built anew,
  /// which takes less time than moving them one by one.
  void set_all(const std::vector<Entry>& entries) {
    if (entries.size() * kArity < entries_.size()) {
      for (const Entry& entry : entries) {
        set(entry.id, entry.key);
      }
      return;
    }
    for (const Entry& entry : entries) {
      if (place_[entry.id] == kAbsent) {
        place_[entry.id] = static_cast<std::uint32_t>(entries_.size());
        entries_.push_back(entry);
      } else {
        entries_[place_[entry.id]] = entry;
      }
    }
    for (auto at = static_cast<std::uint32_t>((entries_.size() + kArity - 2) / kArity); at > 0;) {
      --at;
      sink(at, Entry(entries_[at]));
    }
  }

  /// Removes `id`, which must be present.
  void erase(std::uint32_t id) {
    const std::uint32_t at = place_[id];
    place_[id] = kAbsent;
    const Entry last = entries_.back();
    entries_.pop_back();
    if (last.id != id) {
      settle(at, last);
    }
  }

  void clear() {
    for (const Entry& entry : entries_) {
      place_[entry.id] = kAbsent;
    }
    entries_.clear();
  }

 private:
  static constexpr std::uint32_t kAbsent = ~std::uint32_t{0};
  static constexpr std::uint32_t kArity = 4;  // a node's children share a cache line

  void put(std::uint32_t at, const Entry& entry) {
    entries_[at] = entry;
    place_[entry.id] = at;
  }

  /// Finds the place of `entry` from the hole at `at`, upwards or downwards.
  void settle(std::uint32_t at, const Entry& entry) {
    if (at > 0 && entry < entries_[(at - 1) / kArity]) {
      rise(at, entry);
    } else {
      sink(at, entry);
    }
  }

  void rise(std::uint32_t at, const Entry& entry) {
    do {
      put(at, entries_[(at - 1) / kArity]);
      at = (at - 1) / kArity;
    } while (at > 0 && entry < entries_[(at - 1) / kArity]);
    put(at, entry);
  }

  void sink(std::uint32_t at, const Entry& entry) {
    const auto size = static_cast<std::uint32_t>(entries_.size());
    for (std::uint32_t child = at * kArity + 1; child < size; child = at * kArity + 1) {
      const std::uint32_t end = std::min(child + kArity, size);
      std::uint32_t smallest = child;
      for (++child; child < end; ++child) {
        smallest = entries_[child] < entries_[smallest] ? child : smallest;
      }
      if (!(entries_[smallest] < entry)) {
        break;
      }
      put(at, entries_[smallest]);
      at = smallest;
    }
    put(at, entry);
  }

  std::vector<Entry> entries_;
  std::vector<std::uint32_t> place_;  ///< index in entries_ by id
};

}  // namespace orrery
