// SPDX-License-Identifier: Apache-2.0
// Deadlines that are moved over and over before they expire, as the ends of flows are.
#include <string>
#include <systemc>
#include <utility>
#include <vector>

#include "sim/events/deadline_heap.h"
#include "sim/units/time.h"
#include "tests/bench/contest.h"
#include "tests/bench/contestants.h"

namespace orrery::bench {
namespace {

constexpr std::uint64_t kUpdates = 2'000'000;
constexpr std::uint64_t kBatch = 1000;
constexpr Picoseconds kDeadlineSpread = 1'000'000'000;

/// Time passes between batches, so that deadlines expire while others are moved: four updates for
/// each that expires.
Picoseconds step(std::uint32_t deadlines) { return kDeadlineSpread * kBatch / deadlines / 4; }

/// Moves deadlines in batches. `update(id, delay)` moves one, `pass(time)` lets time pass.
template <class Update, class Pass>
Sample measure(std::uint32_t deadlines, const Update& update, const Pass& pass) {
  Random random(1);
  const auto run = [&](std::uint64_t updates) {
    for (std::uint64_t i = 1; i <= updates; ++i) {
      update(static_cast<std::uint32_t>(random(deadlines)), 1 + random(kDeadlineSpread));
      if (i % kBatch == 0) {
        pass(step(deadlines));
      }
    }
  };
  run(20 * kBatch + 10 * deadlines);  // until as many deadlines are pending as there will be
  const double memory = allocated_bytes();
  const double begin = cpu_seconds();
  run(kUpdates);
  const double seconds = cpu_seconds() - begin;
  return {seconds / static_cast<double>(kUpdates), allocated_bytes() - memory};
}

Sample deadline_heap(std::uint32_t deadlines) {
  DeadlineHeap<> heap(deadlines);
  Picoseconds now = 0;
  return measure(
      deadlines, [&](std::uint32_t id, Picoseconds delay) { heap.set(id, now + delay); },
      [&](Picoseconds time) {
        now += time;
        while (!heap.empty() && heap.top_key() <= now) {
          heap.erase(heap.top());
        }
      });
}

Sample cancel_and_notify(std::uint32_t deadlines) {
  std::vector<sc_core::sc_event> events(deadlines);
  sc_core::sc_start(sc_core::SC_ZERO_TIME);
  return measure(
      deadlines,
      [&](std::uint32_t id, Picoseconds delay) {
        events[id].cancel();  // notify alone would ignore a later time
        events[id].notify(sc_core::sc_time::from_value(delay));
      },
      [](Picoseconds time) { sc_core::sc_start(sc_core::sc_time::from_value(time)); });
}

}  // namespace

void add_deadline_contest() {
  for (const auto& [label, count] :
       std::vector<std::pair<std::string, std::uint32_t>>{{"1k", 1000}, {"100k", 100'000}}) {
    const std::uint32_t deadlines = count;
    const std::string heap = "deadline/heap/" + label;
    const std::string systemc = "deadline/cancel_notify/" + label;
    add_contestant(heap, [deadlines] { return deadline_heap(deadlines); });
    add_contestant(systemc, [deadlines] { return cancel_and_notify(deadlines); });
    add_comparison({"E5", "update of a deadline / cancel and notify, expiry included, " + label,
                    heap, systemc, Quantity::kSeconds, Limit::kAtMost, 0.25});
    add_comparison({"E5", "memory growth in 2 M updates [B], " + label, heap, "", Quantity::kBytes,
                    Limit::kAtMost, 0});
  }
}

}  // namespace orrery::bench
